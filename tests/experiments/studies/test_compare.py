"""The comparison of agents: who gets which options, and what the command refuses."""

from pathlib import Path

import pytest
from script import run_script

from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.run_plan import make_agent
from kernel_gym.experiments.studies import agent_comparison


def options(*sets: str) -> dict[str, dict[str, object]]:
    """Agent -> its options, in a comparison with these settings."""
    base = resolve(overrides={"tasks": ["relu"]}, sets=sets)
    study = agent_comparison.agent_comparison(base, ["value", "dqn", "my_agents:Mine"], 1, Path("nowhere"))
    return {shard.agent: shard.config.agent_options for shard in study.shards}


def test_options_under_an_agents_name_apply_to_that_agent_alone() -> None:
    settings = ("agent_options.value.epsilon=0.05", "agent_options.my_agents:Mine.size=3", "agent_options.gamma=0.9")
    assert options(*settings) == {
        "value": {"epsilon": 0.05, "gamma": 0.9},
        "dqn": {"gamma": 0.9},
        "my_agents:Mine": {"size": 3, "gamma": 0.9},
    }
    assert options("agent_options.value.gamma=0.5", "agent_options.gamma=0.9")["value"] == {"gamma": 0.5}
    with pytest.raises(ConfigError, match="holds the options of value"):
        options("agent_options.value=0.05")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--study", "main", "--seeds", "2"], "leave out --seeds"),
        (["--study", "main", "--set", "env.picks=3", "--profile", "weak"], "leave out --profile, --set"),
        (["--study", "main", "--json"], "leave out --json"),
        (["--study", "main", "--agents", "value"], "either --agents or a --study"),
        (["--agents", "value", "--size", "full"], "--size belongs to --study"),
    ],
)
def test_options_that_a_study_would_ignore_are_refused(words: list[str], says: str, tmp_path: Path) -> None:
    done = run_script("compare", *words, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("compare", ["--agents", "random,similarity,random", "--forecast", "--budget", "1", "--seeds", "2"]),
        ("study", ["main", "--agents", "value,value", "--seeds", "0"]),
        ("study", ["main", "--agents", "value", "--seeds", "0,00"]),
    ],
)
def test_a_run_that_would_count_twice_is_refused(script: str, words: list[str], tmp_path: Path) -> None:
    done = run_script(script, *words, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "seed-0 would be run 2 times: name each agent and seed once" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_oracle_uses_the_author_of_the_run() -> None:
    def oracle_of(*sets: str) -> OracleAgent:
        agent = make_agent(resolve(overrides={"agent": "oracle"}, sets=sets))
        assert isinstance(agent, OracleAgent)
        return agent

    assert (oracle_of().author.profile, oracle_of().author.language) == (OracleAgent().author.profile, "ascendc")
    weak = OracleAgent(profile="weak").author.profile
    assert oracle_of("env.author_options.profile=weak").author.profile == weak
    assert oracle_of("env.device=cuda").author.language == "cuda"
    explicit = oracle_of("agent_options.profile=weak", "agent_options.draws=2")
    assert explicit.author.profile == weak  # explicit options go first
    with pytest.raises(ConfigError, match="simulated author only"):
        oracle_of("env.author=openai")

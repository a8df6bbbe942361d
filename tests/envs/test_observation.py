"""The observation layout: every name is where it says, every number within its bounds."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.observation import CANDIDATE_FEATURES, GLOBAL_FEATURES, History, Layout, Situation, project
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Candidate, telling_words
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Stage
from kernel_gym.verdict import Feasible, Incorrect, Uncompilable, Unjudged


def situation(**changes: Any) -> Situation:
    defaults: dict[str, Any] = {
        "task": "s/a",
        "category": "math",
        "operators": frozenset({"x", "y"}),
        "stage": Stage.DRAFT,
        "attempts_left": 0.5,
        "picks_left": 1.0,
        "first_us": None,
        "best_us": None,
        "last": None,
        "embedding": np.zeros(16, np.float32),
        "fastest": {},
        "clock": 10,
    }
    return Situation(**(defaults | changes))


def candidate(similarity: float = 0.5, text: str = "alpha beta", **changes: Any) -> Candidate:
    fields: dict[str, Any] = {"kind": Kind.TRACE, "title": "t", "text": text, "task": "s/b", "category": "math"}
    if changes.get("kind", Kind.TRACE) is Kind.TRACE:
        fields |= {"code": text, "verdict": Uncompilable("no")}
    return Candidate(MemoryItem(**(fields | changes)), similarity)


def test_slots_and_globals_tile_the_vector() -> None:
    layout = Layout(7)
    named = [layout.candidate(feature.name).ravel() for feature in CANDIDATE_FEATURES]
    named += [layout.globals(feature.name).ravel() for feature in GLOBAL_FEATURES]
    assert sorted(np.concatenate(named)) == list(range(layout.size))
    assert layout.space()["observations"].shape == (layout.size,)
    assert layout.space()["action_mask"].shape == (8,)


def test_parts_have_names_of_their_own() -> None:
    layout = Layout(3)
    assert np.array_equal(layout.candidate("recent")[:, 1], layout.candidate("recent.refine"))
    assert layout.globals("stage")[0] == layout.globals("stage.draft")
    assert layout.candidate("similarity").shape == (3,)
    assert layout.globals("attempts_left").shape == ()


def test_an_unknown_name_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="similarity"):
        Layout(3).candidate("resemblance")


def test_the_docstring_specifies_every_feature() -> None:
    text = KernelSynthesisEnv.__doc__ or ""
    for feature in (*CANDIDATE_FEATURES, *GLOBAL_FEATURES):
        assert feature.name in text, feature.name
        if len(feature.parts) > 1:
            assert f"{feature.name} ({feature.width})" in text
    assert all(feature.name in Layout(2).describe() for feature in CANDIDATE_FEATURES)


def test_the_docstring_specifies_every_option() -> None:
    table = (KernelSynthesisEnv.__doc__ or "").partition("## Arguments")[2]
    assert not [option.name for option in fields(Options) if option.name not in table]


def test_candidates_have_their_features() -> None:
    layout = Layout(4)
    pool = (
        candidate(0.9, verdict=Feasible("", latency=4.0), operators=("x", "z"), stage=Stage.REFINE, born=10),
        candidate(0.1, kind=Kind.PRACTICE, task="", category=""),
        Candidate(candidate(task="s/a", verdict=Feasible("", latency=2.0)).item, 0.3, start=True),
    )
    rows = layout.candidates(pool, situation(fastest={"s/b": 1.0, "s/a": 2.0}))
    flat = np.concatenate([rows.ravel(), layout.situation(situation())])

    def of(name: str) -> list[float]:
        return [round(float(value), 6) for value in flat[layout.candidate(name)]]

    assert of("kind.trace") == [1, 0, 0, 0]
    assert of("kind.practice") == [0, 1, 0, 0]
    assert of("kind.start") == [0, 0, 1, 0]
    assert of("similarity") == [0.9, 0.1, 0.3, 0]
    assert of("same_task") == [0, 0, 1, 0]
    assert of("same_category") == [1, 0, 1, 0]
    assert of("feasible") == [1, 0, 1, 0]
    assert of("relative_latency") == [0.25, 0, 1, 0]
    assert of("origin.refine") == [1, 0, 0, 0]
    assert of("operators") == [0.5, 0, 0, 0]
    assert of("age")[0] == 0
    assert of("age")[1] == pytest.approx(10 / 110, abs=1e-6)


def test_picks_change_the_overlap_and_coverage_features() -> None:
    layout = Layout(3)
    pool = (
        candidate(text="alpha beta", operators=("x",)),
        candidate(text="beta delta", operators=("x", "y")),
        candidate(text="omega", operators=()),
    )
    rows = layout.candidates(pool, situation())
    layout.mark(rows, pool, (0,), frozenset({"x", "y"}))
    columns = layout.candidate_columns
    assert rows[:, columns["picked"]].tolist() == [1, 0, 0]
    assert rows[:, columns["overlap"]].tolist() == [1, 0.5, 0]
    assert rows[:, columns["uncovered"]].tolist() == [0, 1, 0]
    assert rows[:, columns["operators"]].tolist() == [0.5, 1, 0]


def test_version_2_adds_what_earlier_attempts_at_the_task_need() -> None:
    layout = Layout(3)
    history = History()
    history.add(Uncompilable("line 7: alpha is unknown | x"), "alpha gamma")
    history.add(Feasible("", latency=2.0), "gamma delta")
    pool = (
        candidate(text="alpha beta"),
        candidate(text="gamma delta", verdict=Feasible("", latency=1.0)),
        candidate(text="omega", verdict=Uncompilable("line 9: alpha is unknown | y")),
    )
    now = situation(
        kernel_words=history.kernel_words,
        failure_words=history.failure_words,
        failures=history.failures,
        outcomes=history.outcomes,
        author={"uncompilable": 3, "feasible": 1},
    )
    rows, columns = layout.candidates(pool, now), layout.candidate_columns
    words = telling_words("line 7: alpha is unknown | x")
    assert "alpha" in words
    assert rows[:, columns["compiled"]].tolist() == [0, 1, 0]
    assert rows[:, columns["covered"]] == pytest.approx([1 / 3, 2 / 3, 0])
    assert rows[:, columns["named"]] == pytest.approx([1 / len(words), 0, 0])
    assert rows[:, columns["unnamed"]] == pytest.approx([1 / len(words), 0, 0])
    assert rows[:, columns["repeated"]].tolist() == [0, 0, 1]
    assert rows[0, columns["length"]] == pytest.approx(10 / 10010)
    layout.mark(rows, pool, (0,), frozenset(), history.failure_words)
    assert rows[:, columns["unnamed"]].tolist() == [0, 0, 0]
    shares = layout.situation(now)[[layout.global_columns[f"outcomes.{name}"] for name in ("uncompilable", "feasible")]]
    assert shares.tolist() == [0.5, 0.5]
    assert layout.situation(now)[layout.global_columns["author.uncompilable"]] == 0.75


def test_version_1_is_the_beginning_of_version_2() -> None:
    first, second = Layout(3, version=1), Layout(3)
    pool, now = (candidate(),), situation(author={"feasible": 1})
    rows = second.candidates(pool, now)
    assert np.array_equal(rows[:, : first.candidate_width], first.candidates(pool, now))
    assert np.array_equal(second.situation(now)[: first.global_width], first.situation(now))
    assert (first.candidate_width, first.global_width) == (22, 43)
    assert {Layout.of_size(3, layout.size) for layout in (first, second)} == {first, second}
    with pytest.raises(ConfigError, match=r"have .* numbers, not 5"):
        Layout.of_size(3, 5)


def test_runs_of_earlier_versions_keep_the_layout_that_they_had() -> None:
    config = resolve()
    assert config.env.layout == 2
    recorded = config.model_dump()
    del recorded["env"]["layout"]
    assert RunConfig.model_validate(recorded).env.layout == 1
    env = KernelSynthesisEnv(tasks=["relu"], layout=1)
    assert env.observation_space["observations"].shape == (Layout(20, version=1).size,)
    env.close()


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
verdicts = st.sampled_from(
    [None, Feasible("", latency=3.0), Feasible("", latency=1e-9), Incorrect(""), Uncompilable(""), Unjudged("")]
)


@given(
    similarity=numbers,
    mean=st.floats(-1, 1),
    uses=st.integers(0, 10**9),
    born=st.integers(0, 10**9),
    verdict=verdicts,
    best=st.floats(1e-6, 1e6),
    embedding=st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_whatever_the_bank_holds_the_observation_lies_in_its_space(
    similarity: float, mean: float, uses: int, born: int, verdict: Any, best: float, embedding: list[float]
) -> None:
    layout = Layout(2)
    outcomes = {stage: Outcomes(uses, mean, mean) for stage in Stage}
    kind = Kind.PRACTICE if verdict is None else Kind.TRACE
    item = candidate(kind=kind, verdict=verdict, born=born, task="s/a").item
    now = situation(
        clock=10**6,
        fastest={"s/a": best},
        first_us=1.0,
        best_us=best,
        last=verdict,
        embedding=project(np.array(embedding)),
    )
    rows = layout.candidates((Candidate(item, similarity, outcomes),), now)
    vector = np.concatenate([rows.ravel(), layout.situation(now)])
    assert layout.space()["observations"].contains(vector)

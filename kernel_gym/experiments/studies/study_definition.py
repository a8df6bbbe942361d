"""Named studies: what is compared, on which operators, how often; read from `studies/*.yaml`, one code path for all.

A study crosses arms (variations of the settings), agents and seeds; each combination is a *shard*, one run in one
folder. `phases` name the operators: all of a phase are worked on in lock-step, one phase after another on one memory.
An arm with `memory: other` begins with what the shard of `other` with the same seed, and the same agent if there are
several, has in its bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.config import RunConfig, merged, resolve
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.studies.task_sampling import chosen

#: Where a shard's first memories lie, within its folder.
MEMORY_FILE, AGENT_FOLDER = "memory.jsonl", "agent_before"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Size(_Data):
    """How much of the study is run: share of the operators, attempts each, seeds."""

    operators: float = Field(1.0, gt=0, le=1)
    budget: int = Field(30, ge=1)
    seeds: int = Field(3, ge=1)
    settings: dict[str, Any] = Field(default_factory=dict)


class Arm(_Data):
    """A variation: other operators, settings, agents than the study's, or another arm's memory to begin with.

    `options` has constructor arguments by agent.
    """

    phases: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    agents: tuple[str, ...] = ()
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    memory: str = ""


class Published(_Data):
    """A figure of the paper, to stand beside ours."""

    what: str
    value: str


class Protocol(_Data):
    """A named study as its file has it.

    Agents that are `alone` share no memory: every operator begins with the seed knowledge, and its own attempts are all
    that joins. `pairs` are the comparisons that are made, contender and reference; left out, all contenders are
    compared with `reference`, within their arm if that is an agent of every arm. The `yardstick` knows what no agent
    can and is no contender: it is not compared, but learners are told how much of the gap to it they close. `marks`
    are attempts an operator after which the share solved is stated too.
    """

    about: str
    question: str
    agents: tuple[str, ...]
    reference: str
    learners: tuple[str, ...] = ()
    heuristics: tuple[str, ...] = ()
    yardstick: str = ""
    alone: tuple[str, ...] = ()
    phases: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    arms: dict[str, Arm] = Field(default_factory=lambda: {"": Arm()})
    sizes: dict[str, Size]
    marks: tuple[int, ...] = ()
    published: tuple[Published, ...] = ()

    def compared(self, contenders: Sequence[str]) -> list[tuple[str, str]]:
        """Which contenders are compared with which."""
        if self.pairs:
            return [pair for pair in self.pairs if set(pair) <= set(contenders)]
        return [
            (contender, reference)
            for contender in contenders
            if contender != self.yardstick
            and (reference := self._reference(contender)) != contender
            and reference in contenders
        ]

    def _reference(self, contender: str) -> str:
        arm, within, _ = contender.rpartition("/")
        return f"{arm}{within}{self.reference}" if self.reference in self.agents else self.reference


@dataclass(frozen=True)
class Shard:
    """One run of a study, on `tasks`. `memory` is the label of the shard whose bank it begins with."""

    arm: str
    agent: str
    seed: int
    config: RunConfig
    tasks: tuple[str, ...]
    memory: str = ""

    @property
    def contender(self) -> str:
        """What is compared: the arm, the agent, or both."""
        return f"{self.arm}/{self.agent}" if self.arm else self.agent

    @property
    def label(self) -> str:
        """The shard's folder within the study's."""
        return f"{folder_name(self.contender)}/seed-{self.seed}"


def folder_name(contender: str) -> str:
    """What the folder of a contender's runs is called; reports know it by that."""
    return contender.replace(":", "-")


def names() -> list[str]:
    """All named studies."""
    return sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".yaml"))


def load(name: str) -> Protocol:
    """The study of a name."""
    file = _folder() / f"{name}.yaml"
    if not file.is_file():
        raise ConfigError(f"no study is called {name!r}; there are {', '.join(names())}")
    return parse(name, yaml.safe_load(file.read_text()))


def parse(name: str, data: dict[str, Any]) -> Protocol:
    """A study from data. `like: other` takes over what it doesn't say itself."""
    data = dict(data)
    if like := data.pop("like", None):
        data = merged(load(like).model_dump(), data)
    try:
        return Protocol.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"study {name!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def shards(protocol: Protocol, size: str, agents: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[Shard]:
    """Every run of a study, seed by seed so that agents can be compared early; only those asked for."""
    if size not in protocol.sizes:
        raise ConfigError(f"sizes are {', '.join(protocol.sizes)}, not {size!r}")
    scale = protocol.sizes[size]
    found = [
        _shard(protocol, scale, arm, agent, seed)
        for seed in seeds or range(scale.seeds)
        for arm in protocol.arms
        for agent in _agents(protocol, arm, agents)
    ]
    if not found:
        raise ConfigError(f"no arm of the study has {', '.join(agents)}")
    return found


def _agents(protocol: Protocol, arm: str, asked: Sequence[str]) -> Sequence[str]:
    """Those asked for that the arm has; an arm whose memory another begins with keeps its own."""
    own = protocol.arms[arm].agents
    if own and arm and any(other.memory == arm for other in protocol.arms.values()):
        return own
    if own and asked:
        return [agent for agent in asked if agent in own]
    return own or asked or protocol.agents


def _shard(protocol: Protocol, size: Size, name: str, agent: str, seed: int) -> Shard:
    arm = protocol.arms[name]
    phases = [chosen(words, size.operators) for words in arm.phases or protocol.phases]
    at_once = {len(phase) for phase in phases}
    if len(at_once) > 1:
        raise ConfigError(f"the phases of a run must name equally many operators, not {sorted(at_once)}")
    fixed: dict[str, Any] = {
        "agent": agent,
        "agent_options": arm.options.get(agent, {}),
        "seed": seed,
        "tasks": [task.id for phase in phases for task in phase],
        "batch": at_once.pop(),
        "budget": size.budget,
    }
    source = _source(protocol, arm, agent, seed)
    if source:
        fixed["initial_memory"] = MEMORY_FILE
        fixed["initial_agent"] = AGENT_FOLDER if source.split("/")[1] == agent else ""
    if agent in protocol.alone:
        fixed["env"] = {"memory": "fresh"}
    layers = merged(merged(merged(protocol.settings, arm.settings), size.settings), fixed)
    return Shard(name, agent, seed, resolve(overrides=layers), tuple(fixed["tasks"]), source)


def _source(protocol: Protocol, arm: Arm, agent: str, seed: int) -> str:
    """The label of the shard that made the memory which an arm begins with: of its one agent, or of the same agent."""
    if not arm.memory:
        return ""
    maker = protocol.arms.get(arm.memory)
    if maker is None or len(maker.agents) > 1:
        raise ConfigError(f"memory: {arm.memory!r} must be an arm of the study, with one agent of its own or with all")
    return f"{arm.memory}/{maker.agents[0] if maker.agents else agent}/seed-{seed}"


def _folder() -> Any:
    return files("kernel_gym.experiments.studies").joinpath("definitions")

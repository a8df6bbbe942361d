"""Named studies: what is compared, on which tasks, how often. They are defined in `definitions/*.yaml`.

A study crosses arms (variations of the settings), agents and seeds. Each combination is a *shard*: one run in one
folder. `phases` name the tasks: all tasks of a phase are worked on in lock-step, one phase after another on one memory.
An arm with `memory: other` begins with the bank of the shard of `other` that has the same seed (and the same agent, if
`other` has several). `{seed}` in the name of an author profile is replaced by the seed, so that every seed has its own
author.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym.config import RunConfig, merged, resolve
from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.studies.contrasts import MEASURES, Contrast
from kernel_gym.experiments.studies.task_sampling import select_tasks
from kernel_gym.suites import load_suite
from kernel_gym.verdict import Policy

#: Where a shard's initial memories and agent lie, within its folder.
MEMORY_FILE, AGENT_FOLDER = "memory.jsonl", "agent_before"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Size(_Data):
    """How much of a study is run: the share of the tasks, or other ones (`phases`), attempts per task, seeds."""

    #: `operators` is its former name.
    tasks: float = Field(1.0, gt=0, le=1, validation_alias=AliasChoices("tasks", "operators"))
    budget: int = Field(30, ge=1)
    seeds: int = Field(3, ge=1)
    settings: dict[str, Any] = Field(default_factory=dict)
    phases: tuple[str, ...] = ()


class Arm(_Data):
    """A variation of a study: its own tasks, settings or agents, or another arm's memory to begin with.

    Its attempts per task are `times` the size's.

    `options` has constructor arguments by agent.
    """

    phases: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    agents: tuple[str, ...] = ()
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    memory: str = ""
    times: int = Field(default=1, ge=1)


class Published(_Data):
    """A figure of the paper, shown next to ours."""

    what: str
    value: str


class Prediction(_Data):
    """A published figure that the study predicts or has as a target.

    `published` is the share of so many `tasks` that were solved (`correct`) or had a kernel that `compiled`, a
    difference of shares, or a median speedup. `of` names the contenders whose tasks count together, `minus` the
    contender whose share is subtracted. Tasks of other suites than `suite` do not count, nor attempts `after` the first
    so many; 0: all count.
    """

    figure: str
    published: float
    tasks: int = Field(ge=1)
    of: tuple[str, ...] = Field(min_length=1)
    minus: str = ""
    suite: str = ""
    after: int = Field(0, ge=0)
    measure: Literal["correct", "compiled", "speedup"] = "correct"


class StudyDefinition(_Data):
    """A named study as its YAML file defines it.

    Agents that are `alone` share no memory: every task begins with the seed knowledge, and only its own attempts join
    it. `pairs` are the comparisons that are made, contender and reference; if left out, all contenders are compared
    with `reference`, within their arm if every arm has that agent. The `yardstick` uses knowledge that no agent has.
    It is not compared itself; tables state every agent's regret against it. `marks` are numbers of attempts per task
    after which the share of solved tasks is stated too. `contrasts` are the differences that are tested: contender,
    reference, measure. All others are descriptive. `margins` has the margin of equivalence by measure, where it is not
    the measure's own. `options` has constructor arguments by agent, for all arms that give none, and `agent_settings`
    has settings by agent. `rankings` name arms whose agents are ranked by who beats whom, by title. `predictions` are
    published figures that the authors were not fitted to, `targets` those that they were.
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
    contrasts: tuple[Contrast, ...] = ()
    margins: dict[str, float] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    arms: dict[str, Arm] = Field(default_factory=lambda: {"": Arm()})
    sizes: dict[str, Size]
    marks: tuple[int, ...] = ()
    agent_settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    rankings: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    published: tuple[Published, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    targets: tuple[Prediction, ...] = ()

    @model_validator(mode="after")
    def _check_measures(self) -> Self:
        named = {*self.margins, *(measure for _, _, measure in self.contrasts)}
        if unknown := sorted(named - MEASURES.keys()):
            raise ValueError(f"measures are {', '.join(MEASURES)}, not {unknown[0]!r}")
        if unknown := sorted({arm for arms in self.rankings.values() for arm in arms} - self.arms.keys()):
            raise ValueError(f"rankings are over arms of the study, not {unknown[0]!r}")
        return self

    def compared(self, contenders: Sequence[str]) -> list[tuple[str, str]]:
        """Return the pairs of contender and reference that are compared."""
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
        arm, slash, _ = contender.rpartition("/")
        return f"{arm}{slash}{self.reference}" if self.reference in self.agents else self.reference


@dataclass(frozen=True)
class Shard:
    """One run of a study, on `tasks`. `memory` is the label of the shard whose bank it begins with."""

    arm: str
    agent: str
    seed: int
    config: RunConfig
    tasks: tuple[str, ...]
    memory: str = ""

    def under(self, policy: Policy, forecast: bool = False) -> Shard:
        """Return the shard with its kernels judged by a policy, or with forecast verdicts."""
        forecast = forecast or self.config.env.forecast
        env = self.config.env.model_copy(update={"policy": policy, "forecast": forecast})
        return replace(self, config=self.config.model_copy(update={"env": env}))

    def asking(self, model: str) -> Shard:
        """Return the shard with another language model as its author."""
        options = self.config.env.author_options | {"model": model}
        env = self.config.env.model_copy(update={"author_options": options})
        return replace(self, config=self.config.model_copy(update={"env": env}))

    @property
    def contender(self) -> str:
        """What is compared: the arm, the agent, or both."""
        return f"{self.arm}/{self.agent}" if self.arm else self.agent

    @property
    def label(self) -> str:
        """The shard's folder within the study's."""
        return f"{folder_name(self.contender)}/seed-{self.seed}"


def folder_name(contender: str) -> str:
    """Return the name of the folder with a contender's runs."""
    return contender.replace(":", "-")


def names() -> list[str]:
    """Return the names of all studies."""
    return sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".yaml"))


def load(name: str) -> StudyDefinition:
    """Read the definition of a study.

    Args:
        name: The name of a file in `definitions`, without `.yaml`.

    Returns:
        The definition.

    Raises:
        ConfigError: There is no such study.
    """
    file = _folder() / f"{name}.yaml"
    if not file.is_file():
        raise ConfigError(f"no study is called {name!r}; there are {', '.join(names())}")
    return parse(name, parse_yaml(file.read_text()))


def parse(name: str, data: dict[str, Any]) -> StudyDefinition:
    """Return a definition from the data of its file. `like: other` takes what is left out from another study."""
    data = dict(data)
    if like := data.pop("like", None):
        data = merged(load(like).model_dump(), data)
    try:
        return StudyDefinition.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"study {name!r}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def shards(
    definition: StudyDefinition,
    size: str,
    agents: Sequence[str] = (),
    seeds: Sequence[int] = (),
    budget: int = 0,
    arms: Sequence[str] = (),
) -> list[Shard]:
    """Resolve a study to its runs, seed by seed so that agents can be compared early.

    Args:
        definition: The study.
        size: The name of one of its sizes.
        agents: The agents to run; those of the study if left out.
        seeds: The seeds to run; as many as the size says if left out.
        budget: Attempts a task; 0 for the size's.
        arms: The arms to run, and with them those whose memory they begin with; all if left out.

    Returns:
        One shard for each run.

    Raises:
        ConfigError: The size, the arms or the agents are not the study's, or the definition contradicts itself.
    """
    if size not in definition.sizes:
        raise ConfigError(f"sizes are {', '.join(definition.sizes)}, not {size!r}")
    if unknown := [arm for arm in arms if arm not in definition.arms]:
        raise ConfigError(f"arms are {', '.join(definition.arms)}, not {unknown[0]!r}")
    sources = {definition.arms[arm].memory for arm in arms}
    scale = definition.sizes[size]
    if budget:
        scale = scale.model_copy(update={"budget": budget})
    selected = [arm for arm in definition.arms if not arms or arm in arms or arm in sources]
    phases = {arm: _phases(definition, scale, arm) for arm in selected}
    resolved = [
        _shard(definition, scale, arm, phases[arm], agent, seed)
        for seed in seeds or range(scale.seeds)
        for arm in selected
        for agent in _agents(definition, arm, agents)
    ]
    if not resolved:
        raise ConfigError(f"no arm of the study has {', '.join(agents)}")
    return resolved


def on_suites(definition: StudyDefinition, suites: Sequence[str]) -> StudyDefinition:
    """Return the study on other suites: a phase for each, with as many tasks as a phase has and every suite offers.

    Args:
        definition: The study.
        suites: Names of suites, or folders of problem files.

    Returns:
        The same study with other tasks.

    Raises:
        ConfigError: The arms of the study have tasks of their own.
    """
    if not definition.phases or any(arm.phases for arm in definition.arms.values()):
        raise ConfigError("the arms of this study name their own tasks: it cannot be run on another suite")
    count = min(len(select_tasks(definition.phases[0])), *(len(load_suite(suite)) for suite in suites))
    tasks = ", then ".join(f"{count} tasks of {suite}" for suite in suites)
    about = f"The study is defined so: {definition.about.strip()} Here its tasks are others: {tasks}."
    return definition.model_copy(update={"phases": tuple(f"{suite} {count}" for suite in suites), "about": about})


def _agents(definition: StudyDefinition, arm: str, requested: Sequence[str]) -> Sequence[str]:
    """Return the requested agents that an arm has; an arm whose memory another begins with keeps its own."""
    own = definition.arms[arm].agents
    if own and arm and any(other.memory == arm for other in definition.arms.values()):
        return own
    if own and requested:
        return [agent for agent in requested if agent in own]
    return own or requested or definition.agents


def _phases(definition: StudyDefinition, size: Size, arm: str) -> list[list[str]]:
    """Return the ids of an arm's tasks, phase by phase."""
    words = size.phases or definition.arms[arm].phases or definition.phases
    phases = [[task.id for task in select_tasks(phase, size.tasks)] for phase in words]
    counts = {len(phase) for phase in phases}
    if len(counts) > 1:
        raise ConfigError(f"the phases of a run must name equally many tasks, not {sorted(counts)}")
    return phases


def _shard(
    definition: StudyDefinition, size: Size, name: str, phases: Sequence[Sequence[str]], agent: str, seed: int
) -> Shard:
    arm = definition.arms[name]
    fixed: dict[str, Any] = {
        "agent": agent,
        "agent_options": arm.options.get(agent, definition.options.get(agent, {})),
        "seed": seed,
        "tasks": [task for phase in phases for task in phase],
        "batch": len(phases[0]),
        "budget": size.budget * arm.times,
    }
    source = _memory_source(definition, arm, agent, seed)
    if source:
        fixed["initial_memory"] = MEMORY_FILE
        fixed["initial_agent"] = AGENT_FOLDER if source.split("/")[1] == agent else ""
    if agent in definition.alone:
        fixed["env"] = {"memory": "fresh"}
    own = definition.agent_settings.get(agent, {})
    layers = merged(merged(merged(merged(definition.settings, own), arm.settings), size.settings), fixed)
    author = layers.get("env", {}).get("author_options", {})
    if "profile" in author:
        author["profile"] = str(author["profile"]).replace("{seed}", str(seed))
    return Shard(name, agent, seed, resolve(overrides=layers), tuple(fixed["tasks"]), source)


def _memory_source(definition: StudyDefinition, arm: Arm, agent: str, seed: int) -> str:
    """Return the label of the shard whose memory an arm begins with: of its only agent, or of the same agent."""
    if not arm.memory:
        return ""
    source = definition.arms.get(arm.memory)
    if source is None or len(source.agents) > 1:
        raise ConfigError(f"memory: {arm.memory!r} must be an arm of the study, with one agent of its own or with all")
    return f"{arm.memory}/{source.agents[0] if source.agents else agent}/seed-{seed}"


def _folder() -> Any:
    return files("kernel_gym.experiments.studies").joinpath("definitions")

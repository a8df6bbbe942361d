"""What an answer study asks: its tasks, its conditions and how often each is asked. Definitions are YAML files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym.errors import ConfigError

Element = Literal["relative", "own", "failed", "message", "picks", "pages"]
"""A part of a context: the verified kernel of a relative or of the task itself, a failed attempt without or with the
verifier's message, picks of an agent, or the API pages."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Condition(_Frozen):
    """What the model is shown.

    Args:
        name: Name in files and tables.
        about: The condition in a few words.
        shows: The parts of the context.
        agent: The agent whose picks are shown.
        picks: How many of its picks are shown.
        order: Whether the picks are shown as they were made or backwards.
        after: The condition whose failed answers are shown; it must be judged before.
        prompt_version: The version of the prompts.
        device: The device that judges the kernels; its language is the one asked for.
    """

    name: str
    about: str
    shows: tuple[Element, ...] = ()
    agent: str = ""
    picks: int = Field(5, ge=1)
    order: Literal["forwards", "backwards"] = "forwards"
    after: str = ""
    prompt_version: int = 1
    device: Literal["ascend-sim", "cuda"] = "ascend-sim"

    @model_validator(mode="after")
    def _complete(self) -> Condition:
        if ("picks" in self.shows) != bool(self.agent):
            raise ValueError(f"condition {self.name}: picks need an agent, and an agent needs picks")
        if bool({"failed", "message"} & {*self.shows}) != bool(self.after):
            raise ValueError(f"condition {self.name}: a failed attempt comes from another condition: name it in after")
        return self

    @property
    def language(self) -> str:
        """The language that kernels are asked for in."""
        return "cuda" if self.device == "cuda" else "ascendc"


class AnswerStudy(_Frozen):
    """An answer study.

    Args:
        question: What it wants to know.
        answers: Answers in each condition; they are spread evenly over the tasks.
        tasks: The tasks.
        relatives: The other tasks: the nearest of them gives the relative's kernel, and agents learn on them.
        budget: Attempts at each of the other tasks, from which agents pick.
        context_tokens: The longest prompt.
        max_tokens: The longest answer.
        conditions: The conditions.
        pairs: Pairs of conditions that are compared, the second minus the first.
    """

    question: str
    answers: int = Field(ge=1)
    tasks: tuple[str, ...]
    relatives: tuple[str, ...]
    budget: int = Field(8, ge=1)
    context_tokens: int = 12_000
    max_tokens: int = 1_536
    conditions: tuple[Condition, ...]
    pairs: tuple[tuple[str, str], ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> AnswerStudy:
        names = [condition.name for condition in self.conditions]
        if len({*names}) < len(names):
            raise ValueError("two conditions have the same name")
        mentioned = {condition.after for condition in self.conditions} | {name for pair in self.pairs for name in pair}
        if unknown := sorted(mentioned - {*names, ""}):
            raise ValueError(f"there is no condition {', '.join(unknown)}")
        if both := sorted({*self.tasks} & {*self.relatives}):
            raise ValueError(f"{', '.join(both)}: a task of the study cannot be a relative")
        return self

    def condition(self, name: str) -> Condition:
        """Return the condition of a name."""
        for condition in self.conditions:
            if condition.name == name:
                return condition
        known = ", ".join(condition.name for condition in self.conditions)
        raise ConfigError(f"there is no condition {name!r}; known: {known}")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all answer studies, sorted."""
    return tuple(sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml")))


def load(name: str) -> AnswerStudy:
    """Return an answer study by name.

    Args:
        name: The name.

    Returns:
        The study.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in names():
        raise ConfigError(f"there is no answer study {name!r}; known: {', '.join(names())}")
    try:
        return AnswerStudy.model_validate(yaml.safe_load(_folder().joinpath(f"{name}.yaml").read_text("utf-8")))
    except ValidationError as error:
        raise ConfigError(f"answer study {name}: {error.errors()[0]['msg']}") from error


def _folder() -> Traversable:
    return files("kernel_gym.experiments.answer_studies").joinpath("definitions")

"""The apprentice: writes a kernel as well as its profile and its context let it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from zlib import crc32

import numpy as np

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling
from kernel_gym.authors.apprentice.behaviour.moves import Course, draft, refine
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile
from kernel_gym.authors.apprentice.behaviour.spelling_choice import Voice, fluent
from kernel_gym.authors.apprentice.behaviour.spelling_odds import Judge, Judgement
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import craft
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class Choice:
    """How one idiom came out, and why."""

    idiom: str
    spelling: str
    right: bool
    draw: float
    judgement: Judgement


@dataclass(frozen=True)
class Explanation:
    """A kernel with the choices that made it; `problem` says why there is no kernel."""

    kernel: Kernel
    course: Course | None = None
    choices: tuple[Choice, ...] = ()
    problem: str = ""


class Apprentice:
    """A simulated author of Ascend C or CUDA.

    It knows how to compose a kernel but not the dialect: each idiom is spelled right with a probability that depends on
    what the text of its context shows. All randomness comes from the generator passed in, one stream per idiom, so two
    contexts under the same seed differ only in the idioms whose probability crossed their draw.
    """

    language = "ascendc"

    def __init__(self, profile: str | Profile = "middle", language: str = "ascendc") -> None:
        self.craft = craft(language)
        self.language = language
        self.profile = load_profile(profile) if isinstance(profile, str) else profile

    def identity(self) -> str:
        """Changes with the profile, the idioms, the moves and the code that writes."""
        return f"apprentice/{self.language}/{self.profile.name}/{self.profile.digest()}/{_own_digest()}"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Draft a kernel, or refine `start`; empty if the task cannot be lowered."""
        return self.explain(task, context, start, rng).kernel

    def explain(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Explanation:
        """As `write`, with every choice."""
        root = int(rng.integers(2**63))
        try:
            plan = lower(task)
        except Unsupported as error:
            return Explanation(Kernel("", self.language, trusted=True), problem=str(error))
        if not self.profile.reads:
            context, start = (), None
        course = self.course(plan, context, start, root)
        judge = Judge(self.profile, context, start, course.risks, self.language)
        choices: dict[str, Choice] = {}

        def choose(idiom: Idiom) -> Spelling:
            judgement = judge.judge(idiom)
            stream = named_stream(root, idiom.id)
            draw, which = stream.random(2)
            spelling = idiom.right if draw < judgement.probability else _mistake(idiom, which)
            choices[idiom.id] = Choice(idiom.id, spelling.name, spelling.right, float(draw), judgement)
            return spelling

        source = self.craft.write(plan, course.schedule, Voice(self.craft.idioms, choose))
        return Explanation(Kernel(source, self.language, trusted=True), course, tuple(choices.values()))

    def course(self, plan: Plan, context: Context, start: StartPoint | None, root: int) -> Course:
        """The schedule that the author settles on, and the moves that lead to it."""

        def stream(name: str) -> np.random.Generator:
            return named_stream(root, name)

        if start is None:
            return draft(plan, self.profile, context, stream, self.craft.ways)
        return refine(plan, self.profile, context, start, stream, self.craft.ways)


def oracle(task: Task, language: str = "ascendc") -> Kernel:
    """The kernel with every idiom right and the best schedule; raises if the task cannot be lowered."""
    return _fluently(task, language, best=True)


def naive(task: Task, language: str = "ascendc") -> Kernel:
    """The kernel with every idiom right and a careful beginner's schedule; raises if the task cannot be lowered."""
    return _fluently(task, language, best=False)


def _fluently(task: Task, language: str, *, best: bool) -> Kernel:
    known = craft(language)
    source = known.write(lower(task), known.best if best else known.naive, fluent(known.idioms))
    return Kernel(source, language, trusted=True)


def named_stream(root: int, name: str) -> np.random.Generator:
    """The stream of one choice: it does not depend on which other choices are made."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([root, crc32(name.encode())])))


def _mistake(idiom: Idiom, which: float) -> Spelling:
    """A wrong spelling, by weight."""
    total = sum(spelling.weight for spelling in idiom.wrong)
    for spelling in idiom.wrong:
        which -= spelling.weight / total
        if which < 0:
            return spelling
    return idiom.wrong[-1]


@lru_cache(maxsize=1)
def _own_digest() -> str:
    """Changes with the idioms, the moves and the code that writes."""
    total = hashlib.sha256()
    waiting = [resources.files(__package__)]
    while waiting:
        for item in sorted(waiting.pop().iterdir(), key=lambda found: found.name):
            if item.is_dir():
                waiting.append(item)
            elif item.name.endswith((".py", ".yaml")):
                total.update(item.name.encode() + item.read_bytes())
    return total.hexdigest()[:16]

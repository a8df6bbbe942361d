"""The apprentice: a simulated author that makes mistakes, fewer the better its profile and its context."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from zlib import crc32

import numpy as np

from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misread, misreading
from kernel_gym.authors.apprentice.behaviour.moves import ScheduleChoice, draft, refine, repair
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice, always_right
from kernel_gym.authors.apprentice.behaviour.spelling_odds import Estimate, SpellingOdds
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class Choice:
    """How one idiom was spelled, and why: right if `draw` is below the estimated probability."""

    idiom: str
    spelling: str
    right: bool
    draw: float
    estimate: Estimate


@dataclass(frozen=True)
class Explanation:
    """A kernel with the choices that made it; `problem` says why there is no kernel."""

    kernel: Kernel
    schedule_choice: ScheduleChoice | None = None
    choices: tuple[Choice, ...] = ()
    problem: str = ""


class Apprentice:
    """A simulated author of Ascend C or CUDA.

    It can compose a kernel for any task that it can lower, but it does not know the language's dialect by heart. Each
    idiom is spelled right with a probability that depends on what the notes of the context show. All randomness comes
    from the generator that is passed in, with one stream per idiom: two contexts under the same seed differ only in the
    idioms whose probability crossed their draw.

    Args:
        profile: The author profile: a `Profile`, or the name of one (`weak`, `middle`, `strong`, `placebo`, `oracle`).
            `middle~7` is a profile drawn around `middle` with seed 7.
        language: The language to write, `ascendc` or `cuda`.

    Raises:
        ConfigError: The profile or the language is unknown.

    Examples:
        >>> import numpy as np
        >>> from kernel_gym import suites
        >>> from kernel_gym.authors.apprentice import Apprentice
        >>> author = Apprentice("weak")
        >>> kernel = author.write(suites.find_task("level1/relu"), (), None, np.random.default_rng(0))
        >>> kernel.language
        'ascendc'
    """

    language = "ascendc"

    def __init__(self, profile: str | Profile = "middle", language: str = "ascendc") -> None:
        self.backend = backend(language)
        self.language = language
        self.profile = load_profile(profile) if isinstance(profile, str) else profile

    def identity(self) -> str:
        """Return a string that changes with the profile, the idioms, the moves and the code that writes."""
        return f"apprentice/{self.language}/{self.profile.name}/{self.profile.digest()}/{_own_digest()}"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Draft a kernel, refine `start`, or repair it if it is not feasible.

        Args:
            task: The task to write a kernel for.
            context: The notes that the author is shown.
            start: The kernel to refine or to repair; None to draft a new one.
            rng: The source of all randomness.

        Returns:
            A kernel in the author's language; its source is empty if the task cannot be lowered.
        """
        return self.explain(task, context, start, rng).kernel

    def explain(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Explanation:
        """Write a kernel as `write` does, and return it with every choice that was made."""
        root = int(rng.integers(2**63))
        try:
            plan = lower(task)
        except Unsupported as error:
            return Explanation(Kernel("", self.language, trusted=True), problem=str(error))
        if not self.profile.reads:
            context, start = (), None
        schedule_choice = self.choose_schedule(plan, context, start, root)
        odds = self.odds(task, context, start, schedule_choice, root)
        choices: dict[str, Choice] = {}

        def choose(idiom: Idiom) -> Spelling:
            estimate = odds.estimate(idiom)
            draw, which = self._stream_of(idiom, task, start, root).random(2)
            spelling = idiom.right if draw < estimate.probability else _mistake(idiom, which)
            choices[idiom.id] = Choice(idiom.id, spelling.name, spelling.right, float(draw), estimate)
            return spelling

        plan = self._as_read(plan, choose)
        source = self.backend.write(plan, schedule_choice.schedule, SpellingChoice(self.backend.idioms, choose))
        return Explanation(Kernel(source, self.language, trusted=True), schedule_choice, tuple(choices.values()))

    def odds(
        self, task: Task, context: Context, start: StartPoint | None, schedule: ScheduleChoice, root: int
    ) -> SpellingOdds:
        """Return the odds of every idiom in one attempt; `root` seeds the random streams."""
        skeleton = ""
        if start is None and self.profile.skeleton and named_stream(root, "skeleton").random() < self.profile.skeleton:
            skeleton = _skeleton(context)
        return SpellingOdds(self.profile, context, start, schedule.risks, self.language, task.name, skeleton)

    def misreadings(self, plan: Plan) -> tuple[tuple[Idiom, Plan], ...]:
        """Return what this author may misread of a plan, each with the plan as it is then understood."""
        kinds = [kind for kind in KINDS if getattr(self.profile, kind) is not None]
        pairs = ((misreading(kind), misread(plan, kind)) for kind in kinds)
        return tuple((idiom, other) for idiom, other in pairs if other is not None)

    def _as_read(self, plan: Plan, choose: Callable[[Idiom], Spelling]) -> Plan:
        """Return the plan as the author reads it; of several misreadings the last one stands."""
        for idiom, other in self.misreadings(plan):
            if not choose(idiom).right:
                plan = other
        return plan

    def _stream_of(self, idiom: Idiom, task: Task, start: StartPoint | None, root: int) -> np.random.Generator:
        """Return the stream of one idiom's draws.

        A repair does not read the task again: there a task's meaning is drawn once for each author and task.
        """
        if idiom.meaning and start is not None and not start.verdict.feasible:
            return meaning_stream(self.profile.person, idiom, task.name)
        return named_stream(root, idiom.id)

    def choose_schedule(self, plan: Plan, context: Context, start: StartPoint | None, root: int) -> ScheduleChoice:
        """Choose the schedule of one attempt; `root` seeds the random streams."""

        def stream(name: str) -> np.random.Generator:
            return named_stream(root, name)

        if start is not None and not start.verdict.feasible and not self.profile.fluent:
            return repair(start, self.backend.schedules)
        if start is None:
            return draft(plan, self.profile, context, stream, self.backend.schedules)
        return refine(plan, self.profile, context, start, stream, self.backend.schedules)


#: Suites of networks and attention, whose oracles are the apprentice's own kernels: expert kernels were judged on the
#: single operators and their fusions, of levels 1 and 2.
WITHOUT_EXPERT = frozenset({"level3", "attention", "attention_parts", "mhc"})


def oracle(task: Task, language: str = "ascendc") -> Kernel:
    """Return an expert's kernel: every idiom right, the best schedule, and what the apprentice itself does not know.

    In Ascend C an expert does all stages of a task in one launch, keeps the cube cores equally busy and does not gather
    the windows of a convolution of stride 1. No simulated author writes such kernels.

    Args:
        task: The task to write a kernel for.
        language: The language to write, `ascendc` or `cuda`.

    Returns:
        The fastest kernel known for the task.

    Raises:
        Unsupported: The task cannot be lowered.
    """
    if language != "ascendc" or task.suite in WITHOUT_EXPERT:
        return fluent(task, language)
    spelling = always_right(backend(language).idioms)
    try:
        return Kernel(write_kernel(lower(task, expert=True), BEST, spelling, expert=True), language, trusted=True)
    except Unsupported:  # by the expert's way; the apprentice may have another
        return fluent(task, language)


def fluent(task: Task, language: str = "ascendc") -> Kernel:
    """Return the kernel of an apprentice without mistakes: every idiom right and the best schedule.

    Args:
        task: The task to write a kernel for.
        language: The language to write, `ascendc` or `cuda`.

    Returns:
        The fastest kernel that the apprentice can write.

    Raises:
        Unsupported: The task cannot be lowered.
    """
    return _without_mistakes(task, language, best=True)


def naive(task: Task, language: str = "ascendc") -> Kernel:
    """Return the kernel with every idiom right and a careful beginner's schedule.

    Args:
        task: The task to write a kernel for.
        language: The language to write, `ascendc` or `cuda`.

    Returns:
        A correct and slow kernel.

    Raises:
        Unsupported: The task cannot be lowered.
    """
    return _without_mistakes(task, language, best=False)


def _without_mistakes(task: Task, language: str, *, best: bool) -> Kernel:
    writer = backend(language)
    schedule = writer.schedules.best if best else writer.schedules.naive
    return Kernel(writer.write(lower(task), schedule, always_right(writer.idioms)), language, trusted=True)


def named_stream(root: int, name: str) -> np.random.Generator:
    """Return the random stream of one choice; it does not depend on which other choices are made."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([root, crc32(name.encode())])))


def meaning_stream(person: int, idiom: Idiom, task: str) -> np.random.Generator:
    """Return the stream that decides how an author who repairs a kernel understands its task."""
    return named_stream(person, f"{idiom.id}:{task}")


def _skeleton(context: Context) -> str:
    """Return the source of the verified kernel that an author would take over: the task's own, or the first one."""
    kernels = [note for note in context if note.code and note.verdict is not None and note.verdict.feasible]
    own = [note for note in kernels if note.same_task]
    return next((note.code for note in own + kernels), "")


def _mistake(idiom: Idiom, which: float) -> Spelling:
    """Return a wrong spelling, drawn by weight with `which` between 0 and 1."""
    total = sum(spelling.weight for spelling in idiom.wrong)
    for spelling in idiom.wrong:
        which -= spelling.weight / total
        if which < 0:
            return spelling
    return idiom.wrong[-1]


@lru_cache(maxsize=1)
def _own_digest() -> str:
    """Return a hash of the apprentice's sources and data."""
    total = hashlib.sha256()
    folders = [resources.files(__package__)]
    while folders:
        for item in sorted(folders.pop().iterdir(), key=lambda entry: entry.name):
            if item.is_dir():
                folders.append(item)
            elif item.name.endswith((".py", ".yaml")):
                total.update(item.name.encode() + item.read_bytes())
    return total.hexdigest()[:16]

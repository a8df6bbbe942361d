"""Kernels and items whose texts are written when they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, fields
from functools import cached_property, lru_cache, partial
from typing import Any

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.forecast.kernel_texts import KernelText, TaskTexts, structure
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import MemoryItem
from kernel_gym.verdict import Verdict

#: What tells the kernels of a run apart: task, schedule and mistakes.
VariantKey = tuple[str, int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, eq=False)
class Variant:
    """A kernel that the author decided on: its task, schedule, mistakes, the decisive one, and the forecast verdict."""

    texts: TaskTexts
    schedule: Schedule
    mistakes: tuple[tuple[int, int], ...]
    ends: tuple[int, int] | None
    text: KernelText | None
    verdict: Verdict
    idioms: list[Idiom]
    #: What tells it from other kernels, and its experience from others: the failure of a structure, or the kernel.
    key: VariantKey = field(init=False)
    experience_key: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        task, set_field = self.texts.task.id, partial(object.__setattr__, self)
        set_field("key", (task, _number(self.schedule), self.mistakes))
        failed = (task, _number(structure(self.schedule)), self.ends)
        set_field("experience_key", ("experience", *(self.key if self.ends is None else failed)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A kernel that has joined the memory is described already.
        return Variant, (self.texts, self.schedule, self.mistakes, self.ends, None, self.verdict, self.idioms)

    @property
    def wrong(self) -> dict[str, str]:
        """The name of the wrong spelling of each idiom that is wrong."""
        return {self.idioms[column].id: self.idioms[column].wrong[code - 1].name for column, code in self.mistakes}

    @cached_property
    def source(self) -> str:
        """The text of the kernel."""
        return self.texts.source(self.schedule, self.wrong)

    @property
    def digest(self) -> str:
        """The content address of the kernel; worked out once for all attempts that lead to it."""
        digests, which = self.texts.digests, self.key[1:]
        if which not in digests:
            digests[which] = Kernel(self.source, "ascendc").digest
        return digests[which]


@lru_cache(maxsize=65536)
def _number(schedule: Schedule) -> int:
    """Return a schedule as one number, which is quicker to look up than ten fields."""
    return int("".join(f"{int(value):05d}" for value in astuple(schedule)))


class ForecastKernel(Kernel):
    """A kernel whose source is written when it is read."""

    def __init__(self, variant: Variant) -> None:
        self.__dict__.update(variant=variant, language="ascendc", trusted=True)

    @property
    def source(self) -> str:
        """The text of the kernel."""
        variant: Variant = self.__dict__["variant"]
        return variant.source

    @cached_property
    def digest(self) -> str:
        """The content address of the kernel."""
        variant: Variant = self.__dict__["variant"]
        return variant.digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and (self.source, self.language) == (other.source, other.language)

    __hash__ = Kernel.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (self.source, self.language, self.trusted)

    def __deepcopy__(self, memo: dict[int, Any]) -> ForecastKernel:
        return self


class ForecastItem(MemoryItem):
    """A memory item whose title, text and code are written when they are read.

    Args:
        write: Returns the item with all its texts.
        columns: Its other fields.
    """

    def __init__(self, write: Callable[[], MemoryItem], columns: dict[str, Any]) -> None:
        self.__dict__.update(columns, write=write)

    def placed(self, **columns: Any) -> ForecastItem:
        """Return the item with other values of fields that the bank sets."""
        return ForecastItem(self.__dict__["write"], self._eager | columns)

    @property
    def _eager(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("write", "_written")}

    @cached_property
    def _written(self) -> MemoryItem:
        written: MemoryItem = self.__dict__["write"]()
        return written

    @property
    def title(self) -> str:
        """The item in one line."""
        return self._written.title

    @property
    def text(self) -> str:
        """What the author reads."""
        return self._written.text

    @property
    def code(self) -> str:
        """The kernel source of a trace."""
        return self._written.code

    def __eq__(self, other: object) -> bool:
        names = [field.name for field in fields(MemoryItem)]
        return isinstance(other, MemoryItem) and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = MemoryItem.__hash__

    def plain(self) -> MemoryItem:
        """Return the item as an ordinary one, with its texts written."""
        return MemoryItem(**{field.name: getattr(self, field.name) for field in fields(MemoryItem)})

    def __reduce__(self) -> tuple[Any, ...]:
        plain = self.plain()
        return MemoryItem, tuple(getattr(plain, field.name) for field in fields(MemoryItem))

    def __deepcopy__(self, memo: dict[int, Any]) -> ForecastItem:
        return self

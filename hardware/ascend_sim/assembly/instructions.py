"""What the guard has to know of an instruction, on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Refused(Exception):
    """Code that cannot be guarded. The text is a part of a sentence that begins with the name of its function."""


BY_POINTER = "calls a function through a pointer, a cast or a virtual table: call functions by their names"
RUN_TIME_STACK = "changes its stack at run time: use arrays of a constant size"


def unknown(instruction: str) -> str:
    """Return why an instruction is refused that no kernel needs."""
    return f"has an instruction ({instruction}) that cannot be checked: write it in another way"


class Flow(Enum):
    """Where a function goes on after an instruction."""

    NEXT = "next"
    BRANCH = "branch"
    JUMP = "jump"
    CALL = "call"
    END = "end"


class Work(Enum):
    """What an instruction computes, as the chip profile prices it."""

    NONE = "none"
    INTEGER = "integer"
    FLOAT = "float"
    DIVISION = "division"


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of memory that an instruction reads or writes."""

    operand: str
    bytes: int
    is_store: bool
    #: The register of the frame that the place is relative to, and the distance; None for any other place.
    register: str | None = None
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction that does not change the registers of the frame."""

    accesses: tuple[Access, ...] = ()
    flow: Flow = Flow.NEXT
    target: str = ""
    reads_flags: bool = False
    sets_flags: bool = False
    work: Work = Work.NONE


class Frame(Protocol):
    """Where the local variables of a function are."""

    def holds(self, access: Access) -> bool:
        """Return whether all bytes of an access lie among the function's own variables."""


class Machine(Protocol):
    """The instructions of an architecture."""

    #: What stands before the comments of the compiler.
    comment: str
    #: An instruction behind which nothing goes on.
    trap: str

    def prologue(self, lines: Sequence[str]) -> tuple[int, Frame]:
        """Return how many lines at the start of a function make its frame, and the frame.

        Raises:
            Refused: If they make no frame that is understood.
        """

    def epilogue(self, lines: Sequence[str], frame: Frame) -> int:
        """Return how many lines take the frame down and return; 0 if these lines do something else."""

    def read(self, line: str) -> Instruction:
        """Return what an instruction does.

        Raises:
            Refused: If it is none that kernel code may have.
        """

    def check(self, access: Access, keeps_flags: bool) -> list[str]:
        """Return the instructions that call the guard before an access."""

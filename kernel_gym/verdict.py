"""What the verifier says about a kernel.

A closed type: each outcome is a class of its own and carries exactly what that outcome can have, so a latency without
feasibility, or a correct kernel that did not compile, can't be written down. Every verdict answers the same questions
(`feasible`, `hack`, `compiled`, `correct`, `latency_us`, `feedback`); `None` means "not reached".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

Gate = Literal["screen", "compile", "binary", "correctness", "latency"]


@dataclass(frozen=True)
class Profile:
    """Where the time of the timing run went; the refining stage reads it.

    `pipes` is busy microseconds by pipe (`V`, `MTE2`, ...), `bytes` bytes by path (`hbm_read`, ...), `bottleneck` a
    short name (`mte2`, `vector`, `scalar`, `launch`, ...) and `diagnosis` the same in words.
    """

    pipes: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    bottleneck: str = ""
    diagnosis: str = ""


@dataclass(frozen=True)
class _Judged:
    """What every verdict has: words for the author, and where it was obtained."""

    feedback: str
    device: str = ""
    sandbox_tier: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()

    outcome: ClassVar[str]
    feasible: ClassVar[bool] = False

    @property
    def hack(self) -> bool:
        """True if cheating was found, at any gate."""
        return False

    @property
    def compiled(self) -> bool | None:
        """True, false, or None if compilation was not reached."""
        return None

    @property
    def correct(self) -> bool | None:
        """True, false, or None if correctness was not reached."""
        return None

    @property
    def latency_us(self) -> float | None:
        """Latency at the timing shape; only a feasible kernel has one."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain data; `from_json` reads it back."""
        answers = {
            "outcome": self.outcome,
            "feasible": self.feasible,
            "hack": self.hack,
            "compiled": self.compiled,
            "correct": self.correct,
            "latency_us": self.latency_us,
        }
        return answers | {name: value for name, value in asdict(self).items() if name not in answers}


@dataclass(frozen=True)
class Cheated(_Judged):
    """A rule against cheating was broken; `gate` says where it was found and `rule` which one."""

    gate: Gate = "screen"
    rule: str = ""
    outcome: ClassVar[str] = "cheated"

    @property
    def hack(self) -> bool:
        return True

    @property
    def compiled(self) -> bool | None:
        return None if self.gate in ("screen", "compile") else True

    @property
    def correct(self) -> bool | None:
        return True if self.gate == "latency" else None


@dataclass(frozen=True)
class Uncompilable(_Judged):
    """The compiler refused the kernel; `line` is the author's line of the first real error."""

    line: int | None = None
    outcome: ClassVar[str] = "uncompilable"

    @property
    def compiled(self) -> bool | None:
        return False


@dataclass(frozen=True)
class Incorrect(_Judged):
    """The kernel compiled and then faulted, hung, refused a shape or computed something else.

    `cause` is `fault` (a rule of the device was broken), `timeout`, `refused` (`kernel_launch` returned non-zero) or
    `mismatch`; `rule` names the broken device rule. `plain` is the paper's atol = rtol = 1e-2 verdict where values
    were compared.
    """

    cause: Literal["fault", "timeout", "refused", "mismatch"] = "mismatch"
    rule: str = ""
    line: int | None = None
    case: str = ""
    plain: bool | None = None
    outcome: ClassVar[str] = "incorrect"

    @property
    def compiled(self) -> bool | None:
        return True

    @property
    def correct(self) -> bool | None:
        return False


@dataclass(frozen=True)
class Feasible(_Judged):
    """All gates passed."""

    latency: float = 0.0
    profile: Profile = field(default_factory=Profile)
    plain: bool = True
    outcome: ClassVar[str] = "feasible"
    feasible: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.latency > 0:
            raise ValueError(f"a feasible verdict needs a positive latency, not {self.latency}")

    @property
    def compiled(self) -> bool | None:
        return True

    @property
    def correct(self) -> bool | None:
        return True

    @property
    def latency_us(self) -> float | None:
        return self.latency


@dataclass(frozen=True)
class Unjudged(_Judged):
    """The verifier itself failed; says nothing about the kernel and gives no reward."""

    outcome: ClassVar[str] = "unjudged"


Verdict: TypeAlias = Cheated | Uncompilable | Incorrect | Feasible | Unjudged
_BY_OUTCOME: dict[str, type[Verdict]] = {
    kind.outcome: kind for kind in (Cheated, Uncompilable, Incorrect, Feasible, Unjudged)
}
_DERIVED = frozenset({"outcome", "feasible", "hack", "compiled", "correct", "latency_us"})


def from_json(data: dict[str, Any]) -> Verdict:
    """Read back what `to_json` wrote; unknown fields are errors."""
    kind = _BY_OUTCOME[data["outcome"]]
    fields = {name: value for name, value in data.items() if name not in _DERIVED}
    fields["notes"] = tuple(fields.get("notes", ()))
    if "profile" in fields:
        fields["profile"] = Profile(**fields["profile"])
    return kind(**fields)

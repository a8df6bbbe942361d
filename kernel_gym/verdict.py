"""Verdicts: what the verifier finds out about a kernel.

`Verdict` is a closed type: each outcome is a class that has only the fields which that outcome can have. A latency
without feasibility, or a correct kernel that did not compile, cannot be constructed. All verdicts have `feasible`,
`hack`, `compiled`, `correct`, `latency_us` and `feedback`; `None` means that the kernel was stopped before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

Gate: TypeAlias = Literal["screen", "compile", "binary", "correctness", "latency"]
#: The verifier's gates in the order in which a kernel passes them. Documentation numbers them from 1.
GATES: tuple[Gate, ...] = get_args(Gate)
Policy: TypeAlias = Literal["strict", "reference"]
#: How a kernel is judged: at sizes and on values that it cannot know, or at the reference's own shapes and inputs.
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True)
class Profile:
    """Where the time of a kernel goes at the timing sizes; shown to the author when it refines the kernel.

    Args:
        pipes: Busy microseconds by pipe (`V`, `MTE2`, ...).
        bytes: Bytes by path (`hbm_read`, ...).
        waits: Microseconds of waiting by reason.
        counts: Numbers of events by kind.
        bottleneck: Short name of what limits the kernel (`mte2`, `vector`, `scalar`, `launch`, ...).
        diagnosis: The same in words.
    """

    pipes: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    bottleneck: str = ""
    diagnosis: str = ""


@dataclass(frozen=True)
class _Judged:
    """What all verdicts have in common.

    Args:
        feedback: The result in words, for the author.
        device: Name of the device.
        sandbox_tier: Tier of the sandbox that the kernel ran in, `A` to `D`.
        seconds: Seconds spent at each gate.
        notes: Further remarks for readers, for instance how the latency was obtained.
        policy: How the kernel was judged, `strict` or `reference`.
        secret: Fingerprint of the secret that values and sizes were drawn from; empty if nothing was drawn.
    """

    feedback: str
    device: str = ""
    sandbox_tier: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()
    policy: Policy = "strict"
    secret: str = ""

    outcome: ClassVar[str]
    feasible: ClassVar[bool] = False

    @property
    def hack(self) -> bool:
        """Whether cheating was found, at any gate."""
        return False

    @property
    def compiled(self) -> bool | None:
        """Whether the kernel compiled; None if it was stopped before."""
        return None

    @property
    def correct(self) -> bool | None:
        """Whether the kernel is correct; None if it was stopped before."""
        return None

    @property
    def latency_us(self) -> float | None:
        """Latency in microseconds at the timing sizes; None unless the kernel is feasible."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain data; `from_json` reads it back.

        Returns:
            The fields and the derived answers, all of types that JSON has.
        """
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
    """The kernel broke a rule against cheating.

    Args:
        gate: The gate that found it.
        rule: Id of the broken rule.
    """

    gate: Gate = "screen"
    rule: str = ""
    outcome: ClassVar[str] = "cheated"

    @property
    def hack(self) -> bool:
        return True

    @property
    def compiled(self) -> bool | None:
        return True if self._passed("compile") else None

    @property
    def correct(self) -> bool | None:
        return True if self._passed("correctness") else None

    def _passed(self, gate: Gate) -> bool:
        return GATES.index(self.gate) > GATES.index(gate)


@dataclass(frozen=True)
class Uncompilable(_Judged):
    """The compiler refused the kernel.

    Args:
        line: Line of the first error in the author's source, if it has one; in a bundle, the line of the Python file.
    """

    line: int | None = None
    outcome: ClassVar[str] = "uncompilable"

    @property
    def compiled(self) -> bool | None:
        return False


@dataclass(frozen=True)
class Incorrect(_Judged):
    """The kernel compiled, but faulted, hung, refused a size or computed wrong values.

    Args:
        cause: `fault` (it broke a rule of the device), `timeout`, `refused` (`kernel_launch` returned non-zero) or
            `mismatch` (wrong values).
        rule: Id of the broken device rule.
        line: Line of the fault in the author's source, if known.
        case: The case at which it failed; `hidden` for all hidden ones.
        plain: Whether the values would pass the paper's comparison (atol = rtol = 1e-2); None if none were compared.
        wrong: The first wrong elements with their expected and actual values, for people who debug a kernel. Empty
            unless the mismatch is at the public sizes. Authors are not shown them.
    """

    cause: Literal["fault", "timeout", "refused", "mismatch"] = "mismatch"
    rule: str = ""
    line: int | None = None
    case: str = ""
    plain: bool | None = None
    wrong: tuple[str, ...] = ()
    outcome: ClassVar[str] = "incorrect"

    @property
    def compiled(self) -> bool | None:
        return True

    @property
    def correct(self) -> bool | None:
        return False


@dataclass(frozen=True)
class Feasible(_Judged):
    """The kernel passed all gates.

    Args:
        latency: Latency in microseconds at the timing sizes; must be positive.
        profile: Where that time goes.
        plain: Whether the values also pass the paper's comparison (atol = rtol = 1e-2).

    Raises:
        ValueError: If `latency` is not positive.
    """

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
    """The verifier itself failed. It says nothing about the kernel and gives no reward."""

    outcome: ClassVar[str] = "unjudged"


Verdict: TypeAlias = Cheated | Uncompilable | Incorrect | Feasible | Unjudged
"""What the verifier says of a kernel: exactly one of these five types."""
_BY_OUTCOME: dict[str, type[Verdict]] = {
    kind.outcome: kind for kind in (Cheated, Uncompilable, Incorrect, Feasible, Unjudged)
}
_DERIVED = frozenset({"outcome", "feasible", "hack", "compiled", "correct", "latency_us"})


def from_json(data: dict[str, Any]) -> Verdict:
    """Read a verdict from plain data.

    Args:
        data: What `to_json` returned.

    Returns:
        The equal verdict.

    Raises:
        KeyError: If `outcome` is missing or unknown.
        TypeError: If there is an unknown field.
    """
    kind = _BY_OUTCOME[data["outcome"]]
    fields = {name: value for name, value in data.items() if name not in _DERIVED}
    fields |= {name: tuple(fields[name]) for name in ("notes", "wrong") if name in fields}
    if "profile" in fields:
        fields["profile"] = Profile(**fields["profile"])
    return kind(**fields)

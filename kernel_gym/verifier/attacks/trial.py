"""Runs attacks against a verifier and compares each verdict with the expected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from kernel_gym import suites
from kernel_gym.hardware.device import Device
from kernel_gym.hardware.worker_pool import WorkerPool
from kernel_gym.verdict import GATES, Cheated, Incorrect, Verdict
from kernel_gym.verifier.attacks import catalogue
from kernel_gym.verifier.attacks.catalogue import Attack
from kernel_gym.verifier.attacks.recheck import is_right
from kernel_gym.verifier.verifier import Verifier

#: Share of the honest kernel's latency below which a feasible attack is faster.
FASTER = 0.99


@dataclass(frozen=True)
class Result:
    """The result of one attack: its verdict, and what that is compared with.

    Args:
        attack: The attack.
        verdict: Its verdict.
        honest_us: Latency of the honest kernel that it belongs to; None if there is none.
        right: The second opinion on a feasible kernel that is expected to be right.
    """

    attack: Attack
    verdict: Verdict
    honest_us: float | None
    right: bool = False

    @property
    def outcome(self) -> str:
        """`feasible`, `unjudged`, or the gate at which the kernel was stopped."""
        return stopped_at(self.verdict)

    @property
    def ratio(self) -> float | None:
        """Latency as a share of the honest kernel's; None if there is none."""
        if self.verdict.latency_us is None or not self.honest_us:
            return None
        return self.verdict.latency_us / self.honest_us

    @property
    def fault(self) -> str:
        """What is wrong with the outcome; empty if nothing is."""
        if self.outcome == "unjudged":
            return "not judged"
        if self.attack.untold and self.attack.untold in self.verdict.feedback:
            return "told"
        expected = self.attack.expected
        if not self.verdict.feasible:
            return "refused" if expected == "feasible" else ""
        if expected == "right":
            return "" if self.right else "got through"
        if expected == "no gain":
            return "" if self.ratio is not None and self.ratio >= FASTER else "got through"
        return "" if expected == "feasible" else "got through"

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is right and, if the catalogue names a gate, was reached there."""
        return not self.fault and (self.attack.expected not in GATES or self.outcome == self.attack.expected)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "name": self.attack.name,
            "digest": self.attack.kernel.digest,
            "task": self.attack.task,
            "causes": list(self.attack.causes),
            "about": self.attack.about,
            "expected": self.attack.expected,
            "outcome": self.outcome,
            "fault": self.fault,
            "latency_us": self.verdict.latency_us,
            "honest_us": self.honest_us,
            "feedback": self.verdict.feedback,
        }


def stopped_at(verdict: Verdict) -> str:
    """Return the gate that stopped a kernel; `feasible` or `unjudged` if none did."""
    if isinstance(verdict, Cheated):
        return verdict.gate
    if isinstance(verdict, Incorrect) and verdict.case == "timing":
        return "latency"
    return {"uncompilable": "compile", "incorrect": "correctness"}.get(verdict.outcome, verdict.outcome)


def run(verifier: Verifier, attacks: Sequence[Attack], workers: int = 1) -> Iterator[Result]:
    """Judge attacks and the honest kernels that they belong to, and yield the results in order.

    Equal kernels for the same task are judged once. Second opinions are formed by as many `workers`, beside the
    verifier's own.
    """
    honest: dict[str, Future[Verdict] | None] = {}
    for attack in attacks:
        if attack.honest not in honest:
            kernel = catalogue.honest(attack.kernel.language, attack.honest)
            honest[attack.honest] = None if kernel is None else _submit(verifier, kernel)
    opinions: WorkerPool[Attack, bool] = WorkerPool(verifier.device.fork(), _is_right, workers)
    trials = dict[tuple[str, ...], Future[_Trial]]()
    try:
        for attack in attacks:
            if _key(attack) not in trials:
                trials[_key(attack)] = _begin(verifier, opinions, attack)
        for attack in attacks:
            reference, (verdict, opinion) = honest[attack.honest], trials[_key(attack)].result()
            honest_us = None if reference is None else reference.result().latency_us
            yield Result(attack, verdict, honest_us, opinion is not None and opinion.result())
    finally:
        opinions.close()


#: A verdict, and the second opinion on it if one is needed.
_Trial: TypeAlias = tuple[Verdict, Future[bool] | None]


def _key(attack: Attack) -> tuple[str, ...]:
    return attack.kernel.digest, attack.task, attack.expected


def _begin(verifier: Verifier, opinions: WorkerPool[Attack, bool], attack: Attack) -> Future[_Trial]:
    """Judge an attack and, once it is called feasible, ask for a second opinion if that decides."""
    trial: Future[_Trial] = Future()

    def finish(judged: Future[Verdict]) -> None:
        try:
            verdict = judged.result()
            doubtful = verdict.feasible and attack.expected == "right"
            trial.set_result((verdict, opinions.submit(attack) if doubtful else None))
        except BaseException as error:
            trial.set_exception(error)

    _submit(verifier, attack).add_done_callback(finish)
    return trial


def _is_right(device: Device, attack: Attack) -> bool:
    return is_right(device, attack.kernel, suites.find_task(attack.task), seed=int(attack.kernel.digest[:8], 16))


def _submit(verifier: Verifier, attack: Attack) -> Future[Verdict]:
    return verifier.submit(attack.kernel, suites.find_task(attack.task))

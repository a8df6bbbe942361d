"""The verifier: what it lets through is what agents learn.

Gates in order: source screen, compilation, binary screen, correctness, latency. `Verifier.verify` passes a kernel
through them and says what came of it as a `Verdict`.
"""

from kernel_gym.verifier.cache import VerdictCache
from kernel_gym.verifier.verifier import Inspection, Verifier

__all__ = ["Inspection", "VerdictCache", "Verifier"]

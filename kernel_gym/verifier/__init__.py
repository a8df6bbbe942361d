"""The verifier: decides whether a kernel is honest, correct and fast. Its verdict is what agents learn from.

`Verifier.verify` passes a kernel through the gates of `gates.py` and returns a `kernel_gym.verdict.Verdict`.
"""

from kernel_gym.verifier.cache import VerdictCache
from kernel_gym.verifier.inspection import Inspection
from kernel_gym.verifier.verifier import Verifier

__all__ = ["Inspection", "VerdictCache", "Verifier"]

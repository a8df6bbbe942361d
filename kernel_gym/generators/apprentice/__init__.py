"""The embedded author: reads a task's ATen graph and writes a kernel for it, as well as its context has taught it."""

from kernel_gym.generators.apprentice.author import Apprentice, Choice, Explanation, naive, oracle
from kernel_gym.generators.apprentice.lowering import lower
from kernel_gym.generators.apprentice.operators import Unsupported
from kernel_gym.generators.apprentice.profile import Profile, load_profile, profile_names

__all__ = [
    "Apprentice",
    "Choice",
    "Explanation",
    "Profile",
    "Unsupported",
    "load_profile",
    "lower",
    "naive",
    "oracle",
    "profile_names",
]

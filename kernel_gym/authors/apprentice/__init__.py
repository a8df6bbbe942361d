"""The embedded author: reads a task's ATen graph and writes a kernel for it, as well as its context has taught it."""

from kernel_gym.authors.apprentice.author import Apprentice, Choice, Explanation, naive, oracle
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile, profile_names
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Unsupported

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

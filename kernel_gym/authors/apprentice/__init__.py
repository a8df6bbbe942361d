"""The apprentice: a simulated author that writes kernels with mistakes, fewer the more its context shows.

Read in this order. `author.py` is the author. `frontend/` lowers a task to a plan: loop nests, products and scans.
`behaviour/` decides which schedule to take and which idioms to get wrong. `ascendc/` and `cuda/` write a plan as source
text, line by line through `code_writer.py`. `language_backend.py` joins the parts of each language. `prediction.py`
computes how likely an attempt succeeds, without writing a kernel.
"""

from kernel_gym.authors.apprentice.author import Apprentice, Choice, Explanation, fluent, naive, oracle
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile, profile_names
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Unsupported

__all__ = [
    "Apprentice",
    "Choice",
    "Explanation",
    "Profile",
    "Unsupported",
    "fluent",
    "load_profile",
    "lower",
    "naive",
    "oracle",
    "profile_names",
]

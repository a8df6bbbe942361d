"""What each ATen operator means, as maps, reductions, views and products.

`table.py` has the table of handlers and the building blocks; every other module registers the handlers of one family.
"""

from kernel_gym.authors.apprentice.frontend.operators import (
    elementwise,
    lookups,
    products,
    recurrent,
    reductions,
    resizing,
    scans,
    sorting,
    views,
    windows,
)
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS

__all__ = [
    "HANDLERS",
    "elementwise",
    "lookups",
    "products",
    "recurrent",
    "reductions",
    "resizing",
    "scans",
    "sorting",
    "views",
    "windows",
]

"""What each ATen operator means, in maps, reductions, views and products."""

from kernel_gym.authors.apprentice.frontend.operators import elementwise, products, reductions, scans, views, windows
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS

__all__ = ["HANDLERS", "elementwise", "products", "reductions", "scans", "views", "windows"]

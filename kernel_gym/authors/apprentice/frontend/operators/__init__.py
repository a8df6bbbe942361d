"""What each ATen operator means, in maps, reductions, views and products."""

from kernel_gym.authors.apprentice.frontend.operators import elementwise, products, reductions, scans, views, windows
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS, Unsupported

__all__ = ["HANDLERS", "Unsupported", "elementwise", "products", "reductions", "scans", "views", "windows"]

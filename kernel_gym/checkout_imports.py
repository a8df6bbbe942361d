"""Imports of a checkout, where `envs/`, `agents/`, `memory/` and `hardware/` lie beside `kernel_gym/`, not in it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

#: The packages that have a folder of their own at the root of the repository.
FOLDERS = ("envs", "agents", "memory", "hardware")


class CheckoutFinder(MetaPathFinder):
    """Finds `kernel_gym.envs`, `.agents`, `.memory` and `.hardware` at the root of a checkout, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.packages = {f"kernel_gym.{name}": root / name for name in FOLDERS}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of one of the four packages, or None for any other module."""
        folder = self.packages.get(fullname)
        if folder is None:
            return None
        return spec_from_file_location(fullname, folder / "__init__.py", submodule_search_locations=[str(folder)])


def install_finder() -> None:
    """Install the finder, behind the usual ones, if this package lies in a checkout."""
    root = Path(__file__).resolve().parents[1]
    in_checkout = (root / "setup.cfg").is_file() and all((root / name / "__init__.py").is_file() for name in FOLDERS)
    if in_checkout and not any(isinstance(finder, CheckoutFinder) for finder in sys.meta_path):
        sys.meta_path.append(CheckoutFinder(root))

"""What `import kernel_gym` gives, and what it must not."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from repository import ROOT

import kernel_gym
from kernel_gym import checkout_imports

PUBLIC = [name for name in kernel_gym.__all__ if name != "__version__"]


def python(code: str, cwd: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_that_of_its_module(name: str) -> None:
    assert getattr(kernel_gym, name) is getattr(import_module(kernel_gym._DEFINED_IN[name]), name)


def test_all_names_are_declared_for_types_and_at_run_time() -> None:
    assert set(kernel_gym._DEFINED_IN) == set(PUBLIC)
    assert set(PUBLIC) <= set(dir(kernel_gym))
    tree = ast.parse((ROOT / "kernel_gym" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == kernel_gym._DEFINED_IN


def test_importing_the_package_is_cheap() -> None:
    heavy = "torch", "ray", "pydantic", "scipy", "kernel_gym.verifier", "kernel_gym.envs", "kernel_gym.memory"
    assert python(f"import sys, kernel_gym; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'kernel_gym' has no attribute 'Agnet'"):
        _ = kernel_gym.Agnet
    with pytest.raises(ImportError):
        from kernel_gym import Agnet  # noqa: F401


@pytest.mark.parametrize("name", ["tests", "scripts", "docs", "kernel_gym"])
def test_other_folders_of_a_checkout_are_not_packages_of_ours(name: str, tmp_path: Path) -> None:
    for cwd in (ROOT, tmp_path):
        code = f"import importlib.util, kernel_gym; print(importlib.util.find_spec('kernel_gym.{name}'))"
        assert python(code, cwd) == "None"


@pytest.mark.parametrize("name", checkout_imports.FOLDERS)
def test_the_four_folders_are_packages_of_ours(name: str, tmp_path: Path) -> None:
    for cwd in (ROOT, tmp_path):
        assert python(f"import kernel_gym.{name} as m; print(m.__file__)", cwd) == str(ROOT / name / "__init__.py")


def test_the_four_folders_are_found_without_an_installation(tmp_path: Path) -> None:
    code = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'Editable' not in str(f)]\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import kernel_gym.envs, kernel_gym.agents, kernel_gym.memory, kernel_gym.hardware.ascend_sim\n"
        "print(kernel_gym.envs.__name__, len([f for f in sys.meta_path if type(f).__name__ == 'CheckoutFinder']))"
    )
    assert python(code, tmp_path) == "kernel_gym.envs 1"


def test_no_module_of_the_package_imports_a_public_name_from_the_root() -> None:
    for folder in ("kernel_gym", *checkout_imports.FOLDERS):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "kernel_gym":
                    assert not {alias.name for alias in node.names} & set(kernel_gym.__all__), path
                if isinstance(node, ast.Import):
                    assert "kernel_gym" not in {alias.name for alias in node.names}, path

"""The names that the simulator's headers offer, and those that the suite's own kernels use."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from kernel_gym.hardware.ascend_sim import runtime as runtimes

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = runtimes.HERE / "include"
HARDWARE = ROOT / "tests" / "hardware" / "ascend_sim"

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: What is inside stays inside: namespaces of ours, and what classes keep to themselves.
_INNER = re.compile(r"namespace (?:\w*detail|asc) \{.*?\n\}  // namespace |\nprivate:\n.*?\n\};", re.DOTALL)
_DECLARED = re.compile(
    r"(?:ASC_INLINE|inline|class|struct|enum class|enum|using)\s[^;{}()=]*?\b([A-Za-z]\w*)\s*(?=[({:=;]|$)"
)
_MADE_BY_MACRO = re.compile(
    r"^\s*ASC_(?!EVENT|CODE|CAST|BUILTIN|OPERATOR|TMP_SIZE|QUANT_TMP)\w+\(([A-Z]\w+)\b", re.MULTILINE
)
_TMP_SIZE = re.compile(r"ASC_(?:QUANT_)?TMP_SIZE\((\w+)")
_METHOD = re.compile(
    r"^\s+(?:explicit |static |virtual )?[\w:<>&* ]+?\s\*?([A-Z]\w+)\([^;]*\) (?:const )?\{", re.MULTILINE
)
_CONSTANT = re.compile(r"\b([A-Z][A-Z0-9_]{3,}|[A-Z]+_[A-Z0-9_]+)\s*(?:=|,|\}|\{)")
_EVENT = re.compile(r"#define ASC_EVENT.*|ASC_EVENT\([^)]*\)|Get##name##\w+")
#: How the kernel of the host function writes GetTanhMaxMinTmpSize, GetSinMaxMinTmpSize, ...
_PASTED = re.compile(r"\bSIZE\((\w+)\)")
#: Parameters of templates.
_PARAMETERS = {"Bias", "Callbacks"}
_WORD = re.compile(r"[A-Za-z_]\w*")
#: Lower case but public.
_SMALL = {"half", "bfloat16_t", "int4b_t", "float16_t", "float32_t", "printf", "sqrt", "max", "min", "abs"}
_SMALL |= {"block_idx", "get_block_idx", "get_block_num", "pipe_barrier"}


def offered() -> set[str]:
    """Functions, types, methods and constants that a kernel may name, of all headers."""
    public: set[str] = set()
    for path in sorted(INCLUDE.rglob("*.h")):
        if path.name in ("abi.h", "launch.h"):
            continue
        text = _EVENT.sub("", _COMMENT.sub("", _INNER.sub("\n", path.read_text())))
        names = {name for name in _DECLARED.findall(text) if name[0].isupper()}
        names |= set(_MADE_BY_MACRO.findall(text)) | set(_METHOD.findall(text))
        names |= {f"Get{name}MaxMinTmpSize" for name in _TMP_SIZE.findall(text)}
        names |= {name for name in _CONSTANT.findall(text) if not name.startswith(("ASC_", "__"))}
        names |= _SMALL & set(_WORD.findall(text))
        public |= names
    return {name for name in public if len(name) > 2 and not name.startswith("ASC_")} - _PARAMETERS


def exercised() -> set[str]:
    """Words of all kernels that the suite compiles and runs to their end."""
    texts = [path.read_text() for path in _kernel_files()]
    for path in [*(HARDWARE / "numerics").glob("test_*.py"), *_other_tests()]:
        texts += _strings(path)
    cases = yaml.safe_load((HARDWARE / "rules.yaml").read_text())
    texts += [text for case in cases for text in case.get("good", {}).values()]
    pasted = {f"Get{name}MaxMinTmpSize" for text in texts for name in _PASTED.findall(text)}
    return pasted | {word for text in texts for word in _WORD.findall(_COMMENT.sub("", text))}


def _kernel_files() -> list[Path]:
    folders = (HARDWARE / "kernels", ROOT / "docs" / "walkthrough", runtimes.HERE / "calibration")
    return [path for folder in folders for path in sorted(folder.glob("*.cpp"))]


def _other_tests() -> list[Path]:
    return [
        HARDWARE / name
        for name in ("test_ascend_sim.py", "test_as_hardware.py", "test_matmul_interface.py", "test_rules.py")
    ]


def _strings(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]

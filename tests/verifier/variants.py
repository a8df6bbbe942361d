"""Honest kernels in many styles, made from a few by changes that mean nothing to a compiler."""

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

SOURCES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "honest").glob("*.cpp"))}


def unqualified(text: str) -> str:
    return (
        re.sub(r"using AscendC::\w+;\n", "", text)
        .replace("AscendC::", "")
        .replace('#include "kernel_gym.h"', '#include "kernel_gym.h"\nusing namespace AscendC;')
    )


def windows_lines(text: str) -> str:
    return text.replace("\n", "\r\n")


def tabs(text: str) -> str:
    return text.replace("    ", "\t")


def bare(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def chatty(text: str) -> str:
    lines = text.splitlines()
    return (
        "\n".join(
            line if line.startswith("#") or line.endswith("\\") else f"{line} // system() asm {{" for line in lines
        )
        + "\n"
    )


def spread_launch(text: str) -> str:
    return re.sub(
        r"<<<(.*?),\s*nullptr,\s*stream>>>", r"<<<\n        \1,\n        nullptr,\n        stream>>>", text, flags=re.S
    )


def macro_constants(text: str) -> str:
    text = re.sub(r"\bsizeof\(float\)", "ELEMENT_BYTES", text)
    return text.replace(
        '#include "kernel_gym.h"', '#include "kernel_gym.h"\n#define ELEMENT_BYTES \\\n    sizeof(float)', 1
    )


def renamed(text: str) -> str:
    return re.sub(r"\b(offset|length|total)\b", r"my_\1_", text)


def marked(text: str) -> str:
    return "\ufeff" + text


def c_block(text: str) -> str:
    return (
        text.replace(
            'extern "C" int kernel_launch(const KernelArgs', 'extern "C" {\nint kernel_launch(const KernelArgs'
        )
        + "}\n"
        if text.count('extern "C" int kernel_launch') == 1
        else text
    )


def guarded(text: str) -> str:
    return "#ifndef KERNEL_FILE_H\n#define KERNEL_FILE_H\n" + text + "#endif // KERNEL_FILE_H\n"


def helper_macro(text: str) -> str:
    return (
        text.replace("inline void", "DEVICE_FUNCTION")
        .replace("__aicore__ DEVICE_FUNCTION", "DEVICE_FUNCTION")
        .replace(
            '#include "kernel_gym.h"', '#include "kernel_gym.h"\n#define DEVICE_FUNCTION __aicore__ inline void', 1
        )
    )


#: In this order: the mark of an encoding can only be the first character.
CHANGES: tuple[Callable[[str], str], ...] = (
    unqualified,
    tabs,
    bare,
    chatty,
    spread_launch,
    macro_constants,
    renamed,
    c_block,
    helper_macro,
    guarded,
    windows_lines,
    marked,
)


def variants() -> Iterator[tuple[str, str, str]]:
    """Name, the kernel it was made of, and text."""
    for name, text in SOURCES.items():
        yield name, name, text
        for change in CHANGES:
            yield f"{name}-{change.__name__}", name, change(text)
        for first, second in combinations(CHANGES, 2):
            yield f"{name}-{first.__name__}-{second.__name__}", name, second(first(text))

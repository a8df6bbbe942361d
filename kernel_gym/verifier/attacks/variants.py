"""Variants of honest kernels: changes that mean nothing to a compiler, and other sizes of tiles."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kernel_gym.kernel import Kernel
from kernel_gym.verifier.attacks.catalogue import Attack


def unqualified(text: str) -> str:
    """Return the text with a using directive instead of qualified names, unless it has a type of an API's name."""
    if re.search(r"\b(?:struct|class) (?:Gelu|Relu|SoftMax|LayerNorm|Matmul)\b", text):
        return text
    return (
        re.sub(r"using AscendC::\w+;\n", "", text)
        .replace("AscendC::", "")
        .replace('#include "kernel_gym.h"', '#include "kernel_gym.h"\nusing namespace AscendC;')
    )


def windows_lines(text: str) -> str:
    """Return the text with Windows line ends."""
    return text.replace("\n", "\r\n")


def tabs(text: str) -> str:
    """Return the text indented by tabs."""
    return text.replace("    ", "\t")


def bare(text: str) -> str:
    """Return the text without comments; what looks like one inside a string stays."""
    pattern = r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda match: match[1] or "", text, flags=re.S)


def chatty(text: str) -> str:
    """Return the text with a comment behind every line."""
    lines = text.splitlines()
    return (
        "\n".join(
            line if line.startswith("#") or line.endswith("\\") else f"{line} // system() asm {{" for line in lines
        )
        + "\n"
    )


def spread_launch(text: str) -> str:
    """Return the text with launches on several lines."""
    return re.sub(
        r"<<<([^<>\"]*?),\s*nullptr,\s*stream>>>", r"<<<\n        \1,\n        nullptr,\n        stream>>>", text
    )


def macro_constants(text: str) -> str:
    """Return the text with a macro for the size of an element."""
    text = re.sub(r"\bsizeof\(float\)", "ELEMENT_BYTES", text)
    return text.replace(
        '#include "kernel_gym.h"', '#include "kernel_gym.h"\n#define ELEMENT_BYTES \\\n    sizeof(float)', 1
    )


def renamed(text: str) -> str:
    """Return the text with other names of variables."""
    return re.sub(r"\b(offset|length|total)\b", r"my_\1_", text)


def marked(text: str) -> str:
    """Return the text with a byte order mark before it."""
    return "\ufeff" + text


def c_block(text: str) -> str:
    """Return the text with the entry in a block of C linkage."""
    return (
        text.replace(
            'extern "C" int kernel_launch(const KernelArgs', 'extern "C" {\nint kernel_launch(const KernelArgs'
        )
        + "}\n"
        if text.count('extern "C" int kernel_launch') == 1
        else text
    )


def guarded(text: str) -> str:
    """Return the text with an include guard."""
    return "#ifndef KERNEL_FILE_H\n#define KERNEL_FILE_H\n" + text + "#endif // KERNEL_FILE_H\n"


def helper_macro(text: str) -> str:
    """Return the text with a macro for the heads of functions."""
    return (
        text.replace("inline void", "DEVICE_FUNCTION")
        .replace("__aicore__ DEVICE_FUNCTION", "DEVICE_FUNCTION")
        .replace(
            '#include "kernel_gym.h"', '#include "kernel_gym.h"\n#define DEVICE_FUNCTION __aicore__ inline void', 1
        )
    )


def other_tiles(text: str) -> str:
    """Return the text with tiles of half the size, where it has tiles of 4096 elements and asserts nothing of them."""
    return text if "static_assert" in text else re.sub(r"\b4096\b", "2048", text)


def other_includes(text: str) -> str:
    """Return the text with its two headers in the other order."""
    first, second = '#include "kernel_operator.h"\n', '#include "kernel_gym.h"\n'
    return text.replace(first + second, second + first)


#: In this order: a byte order mark can only be the first character.
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
    other_tiles,
    other_includes,
    windows_lines,
    marked,
)


def variants(kernels: Sequence[Attack], count: int, seed: int) -> Iterator[Attack]:
    """Yield honest kernels, each with one to four changes; the same ones for the same seed."""
    rng = random.Random(f"variants {seed}")
    for index in range(count):
        origin = rng.choice(kernels)
        changes = sorted(rng.sample(range(len(CHANGES)), rng.randint(1, 4)))
        text = origin.kernel.source
        for change in changes:
            text = CHANGES[change](text)
        about = f"{origin.name}: {', '.join(CHANGES[change].__name__ for change in changes)}"
        kernel = Kernel(text, origin.kernel.language)
        yield replace(origin, name=f"variant_{seed}_{index}", kernel=kernel, causes=("variants",), about=about)

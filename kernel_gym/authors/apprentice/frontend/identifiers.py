"""C++ identifiers made from the names of tasks and of their tensors, which may be any text."""

from __future__ import annotations

import re

#: Words of C++ that a Python name or a file's name can be; words that Python reserves, too, are here for files.
KEYWORDS = re.compile(
    r"alignas|alignof|and|and_eq|asm|auto|bitand|bitor|bool|break|case|catch|char|class|compl|"
    r"concept|const|consteval|constexpr|constinit|continue|co_await|co_return|co_yield|decltype|default|"
    r"delete|do|double|dynamic_cast|else|enum|explicit|export|extern|false|float|for|friend|goto|if|"
    r"inline|int|long|mutable|namespace|new|noexcept|not|not_eq|nullptr|operator|or|or_eq|private|"
    r"protected|public|register|reinterpret_cast|requires|return|short|signed|sizeof|static|static_assert|"
    r"static_cast|struct|switch|template|this|thread_local|throw|true|try|typedef|typeid|typename|union|"
    r"unsigned|using|virtual|void|volatile|wchar_t|while|xor|xor_eq"
)

#: Names that the generated code declares beside tensors.
DECLARED = frozenset({"t", "tiling", "op", "args", "stream", "cores", "blocks"})


def task_identifier(name: str) -> str:
    """Return a task's name as an identifier with underscores: `relu` stays, `1_Leaky-Add.py` is `op_1_Leaky_Add`."""
    words = "_".join(_words(name.removesuffix(".py")))
    return words if words[:1].isalpha() and not KEYWORDS.fullmatch(words) else f"op_{words}".rstrip("_")


def tensor_identifier(name: str) -> str:
    """Return a tensor's name as an identifier in camel case: `linear.weight` is `linearWeight`."""
    words = _words(name)
    label = "".join(words[:1] + [word[:1].upper() + word[1:] for word in words[1:]])
    usable = label[:1].isalpha() and not KEYWORDS.fullmatch(label) and label not in DECLARED
    return label if usable else f"tensor{label[:1].upper()}{label[1:]}"


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]

"""A kernel: one self-contained source file, or a bundle of six texts in one Python file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["file", "bundle"]
#: The six strings of a bundle, MultiKernelBench's form of an operator project, with the names that feedback uses.
BUNDLE_TEXTS = {
    "project_json_src": "project JSON",
    "host_tiling_src": "host tiling",
    "host_operator_src": "host operator",
    "kernel_src": "kernel",
    "python_bind_src": "Python binding",
    "model_src": "model",
}
_ASSIGNMENT = re.compile(rf"^({'|'.join(BUNDLE_TEXTS)})[ \t]*=", re.MULTILINE)


def readable(text: str) -> str:
    """Return a text as all of its readers read it.

    Halves of characters, which JSON can hold and no file can (`"\\ud800"`), become question marks. Every line ends in a
    line feed: to g++ a carriage return ends one, too.
    """
    return text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True)
class Kernel:
    """Source text of a kernel and its language.

    Args:
        source: The text of one self-contained file, made `readable`.
        language: Language of the text: `ascendc` or `cuda`.
        trusted: True only for kernels that this package wrote (the apprentice, the oracles). Others, written by a model
            or a person, do not run below sandbox tier B.
        form: `file`, or `bundle` for a Python file of six strings; None to tell by the text.
    """

    source: str
    language: str = "ascendc"
    trusted: bool = False
    form: Form | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", readable(self.source))
        if self.form is None:
            object.__setattr__(self, "form", form_of(self.source))

    @cached_property
    def digest(self) -> str:
        """Content address: kernels with the same text, form and language have the same digest."""
        kind = self.language if self.form == "file" else f"{self.language} {self.form}"
        return hashlib.sha256(f"{kind}\0{self.source}".encode()).hexdigest()


def form_of(source: str) -> Form:
    """Return the form of a kernel's text: `bundle` if a line assigns to one of the six names, else `file`."""
    return "bundle" if _ASSIGNMENT.search(source) else "file"

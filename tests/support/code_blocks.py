"""The code blocks of a Markdown page, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*) -->\n)?```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n"
    r"(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One fenced block; `title` is the file that readers save it as, `reason` says why a test does not run it."""

    language: str
    code: str
    title: str = ""
    reason: str = ""

    @property
    def commands(self) -> Iterator[str]:
        """Every command line, continued lines joined, without comments and prompts."""
        for line in self.code.replace("\\\n", " ").splitlines():
            words = re.sub(r"(^|\s)#.*", "", line.removeprefix("$ ")).strip()
            if words:
                yield " ".join(words.split())


def blocks(page: Path) -> list[Block]:
    """Every code block of a page."""
    return [
        Block(block["language"], block["code"], block["title"] or "", block["reason"] or "")
        for block in _BLOCK.finditer(page.read_text())
    ]


def kernel_gym_commands(page: Path) -> list[list[str]]:
    """The arguments of every `kernel-gym` command in a page's blocks, redirections left out."""
    lines = [command for block in blocks(page) for command in block.commands]
    return [shlex.split(line.split(" > ")[0])[1:] for line in lines if line.startswith("kernel-gym ")]

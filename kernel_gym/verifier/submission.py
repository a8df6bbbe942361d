"""What an author hands in, as the gates read it: one file, or the texts of a bundle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kernel_gym.hardware.bundles.text import Bundle
from kernel_gym.hardware.bundles.text import read as read_bundle
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.kernel import BUNDLE_TEXTS, Kernel
from kernel_gym.verifier.screening.screen import BOOKS
from kernel_gym.verifier.screening.source import Source, read

#: Texts of a bundle that are compiled for the host.
_HOST_TEXTS = ("host_tiling_src", "host_operator_src")


@dataclass(frozen=True)
class Submission:
    """The texts of a kernel.

    Args:
        kernel: The kernel.
        bundle: Its bundle; None if the kernel is one file.
    """

    kernel: Kernel
    bundle: Bundle | None = None

    @property
    def device_text(self) -> str:
        """The text with the device code."""
        return self.bundle["kernel_src"] if self.bundle else self.kernel.source

    @cached_property
    def device_source(self) -> Source | None:
        """The device code as the screens read it; None in a language that has no screen."""
        return read(self.device_text) if self.kernel.language in BOOKS else None

    @property
    def device_part(self) -> str:
        """How feedback names that text; empty if it is the only one."""
        return BUNDLE_TEXTS["kernel_src"] if self.bundle else ""

    def line_of(self, error: Diagnostic) -> int | None:
        """Return the line of the author's file that a diagnostic is about."""
        if self.bundle is None or not error.part:
            return error.line
        return self.bundle.line_in(self.kernel.source, error.part, error.line)

    @property
    def host_texts(self) -> dict[str, str]:
        """The texts that are compiled for the host alone, by the names that feedback uses."""
        return {BUNDLE_TEXTS[name]: self.bundle[name] for name in _HOST_TEXTS} if self.bundle else {}

    @property
    def texts(self) -> dict[str, str]:
        """All texts by the names that diagnostics use."""
        return self.bundle.parts if self.bundle else {"": self.kernel.source}


def read_submission(kernel: Kernel) -> Submission:
    """Return the texts of a kernel; a BundleError if it is a bundle and lacks something."""
    return Submission(kernel, read_bundle(kernel.source) if kernel.form == "bundle" else None)

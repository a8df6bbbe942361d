"""What a bundle's tiling function set, by what it was asked.

A tiling function is code of a stranger, and sees shapes, types and attributes only. No list of system calls keeps two
processes of one machine apart for certain. So the function runs before a process has seen the values of a case, while
no process of the bundle lives, and what it set is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kernel_gym.hardware.bundles import host
from kernel_gym.hardware.bundles.host import HostFailure, HostProgram, Tiling
from kernel_gym.hardware.bundles.time_left import TimeLeft

#: Seconds that the tiling function may take for all launches of one call.
SECONDS = 60.0


def limit(all_calls: TimeLeft) -> TimeLeft:
    """Return the time of the tiling function in one call."""
    return TimeLeft(SECONDS, "the tiling function for all launches of a call", all_calls)


class Tilings:
    """The tilings of one bundle by their requests."""

    def __init__(self) -> None:
        self._known: dict[str, Tiling | HostFailure] = {}
        self._closed: set[Hashable] = set()

    def make(self, program: HostProgram, requests: Iterable[str], case: Hashable, all_calls: TimeLeft) -> None:
        """Run the tiling function for requests of a case, unless processes may have seen the values of the case.

        The first launch whose request fails ends the call, so later requests are not made.
        """
        if case in self._closed:
            return
        self._closed.add(case)
        left = limit(all_calls)
        for request in requests:
            if request not in self._known:
                try:
                    self._known[request] = host.tile(program, request, left)
                except HostFailure as failure:
                    self._known[request] = failure
            if isinstance(self._known[request], HostFailure):
                return

    def find(self, request: str) -> Tiling | None:
        """Return the tiling of a request; None if it was not made. A HostFailure if the function failed."""
        found = self._known.get(request)
        if isinstance(found, HostFailure):
            raise HostFailure(str(found), found.late)
        return found

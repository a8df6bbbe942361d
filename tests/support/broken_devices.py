"""Devices that a cluster refuses."""

from __future__ import annotations

import os
import time

from kernel_gym.hardware.ascend_sim.device import AscendSim


class Unavailable(AscendSim):
    """A device that no node has."""

    def unavailable_reason(self) -> str | None:
        return "no such hardware"


class Differing(AscendSim):
    """A device that is another one in every process."""

    def identity(self) -> str:
        return f"one/{os.getpid()}/{time.time_ns()}"

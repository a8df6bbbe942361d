"""The roofline of a chip profile: the least time in which a task can be computed, at the best number of cores.

A launch takes longer the more cores it starts, and the more cores work, the less time they need. The roofline is the
minimum over launches on vector cores, on cube cores, and on both. The cube unit multiplies, adds a bias and clips at
zero; a task that computes anything else needs vector cores. The roofline has the figures of the timing pass: its rates
of HBM and of each core's ports, and its cycles for a fractal and for the multiply-add of a vector. So it is what the
simulator can give at best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernel_gym.hardware.ascend_sim.chip import ChipProfile

#: Bytes of a vector, and the rows and columns of a fractal, which is 32 bytes deep.
VECTOR_BYTES, FRACTAL = 256, 16 * 16 * 32


@dataclass(frozen=True)
class Work:
    """What a task needs at least: bytes read and written once, and multiply-adds of elements of `size` bytes.

    `nonlinear` says that it computes what the cube unit cannot.
    """

    read: int
    written: int
    multiply_adds: int
    size: int
    nonlinear: bool = False


@dataclass(frozen=True)
class _Launch:
    """A launch on so many cores of each kind."""

    vectors: int
    cubes: int

    def overhead_us(self, chip: ChipProfile) -> float:
        """Return the time until the cores begin. Cube cores beside vector cores start with them."""
        cores = self.vectors or self.cubes
        return chip["launch.base_us"] + chip["launch.core_us"] * cores + chip["launch.cube_us"] * (self.cubes > 0)

    def work_us(self, chip: ChipProfile, work: Work) -> float:
        """Return the time for which the busiest of memory, ports and arithmetic works."""
        ports = (self.vectors + self.cubes) * chip["memory.hbm_core_gbs"]
        out = self.vectors * chip["memory.write_core_gbs"] + self.cubes * chip["cube.fix_gbs"]
        reading = work.read / (1e3 * min(chip["memory.hbm_gbs"], ports))
        writing = work.written / (1e3 * min(chip["memory.l2_gbs"], out))
        return max(reading, writing, work.multiply_adds / (chip["clock_mhz"] * self._products(chip, work.size)))

    def _products(self, chip: ChipProfile, size: int) -> float:
        """Return the multiply-adds of a cycle. A fractal of floats takes a cube core two steps."""
        steps = chip["cube.step"] * (2 if size == 4 else 1)
        cube, vector = FRACTAL / size / steps, VECTOR_BYTES / size / chip["vector.mul_add_dst.repeat"]
        return self.cubes * cube + self.vectors * vector


def _launches(chip: ChipProfile) -> Iterator[_Launch]:
    vectors, cubes = int(chip["vector_cores"]), int(chip["cube_cores"])
    yield from (_Launch(cores, 0) for cores in range(1, vectors + 1))
    yield from (_Launch(0, cores) for cores in range(1, cubes + 1))
    yield from (_Launch(2 * cores, cores) for cores in range(1, min(cubes, vectors // 2) + 1))


def roofline_us(chip: ChipProfile, work: Work) -> float:
    """Return the microseconds that a task needs at least on a chip."""
    launches = (launch for launch in _launches(chip) if launch.vectors or not work.nonlinear)
    return min(launch.overhead_us(chip) + launch.work_us(chip, work) for launch in launches)

"""What is wiped before a call, without a GPU: the trusted kernels that are queued and the memory that is filled."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

from kernel_gym.hardware.cuda.driver import GpuError
from kernel_gym.hardware.cuda.timed_calls import Calls, Trusted

FACTS = {"shared_bytes": 232_448, "reserved_bytes": 1024, "multiprocessors": 132, "l2_bytes": 62_914_560,
         "threads": 2048, "memory_bytes": 150 << 30}  # fmt: skip


class Recorder:
    """A GPU that only remembers what it is told."""

    grain = 2 << 20

    def __init__(self, local: int = 0) -> None:
        self.facts, self.local = FACTS, local
        self.launched: dict[str, tuple[Any, ...]] = {}
        self.filled: dict[int, int] = {}

    def function(self, module: object, name: str) -> str:
        return name

    def buffer(self, size: int) -> int:
        assert size % self.grain == 0
        return size << 10  # an address that tells the size

    def figures(self, function: str) -> dict[str, int]:
        return {"local": self.local}

    def fill(self, address: int, byte: int, size: int) -> None:
        self.filled[address] = size

    def launch(self, function: str, *shape: Any) -> None:
        self.launched[function] = shape

    def allow_shared(self, function: str, size: int) -> None: ...

    def forget_persistence(self) -> None: ...


@pytest.mark.parametrize(("local", "kilobytes"), [(0, 2), (512, 2), (513, 8), (28_000, 32), (60_000, 128)])
def test_the_local_memory_of_all_threads_is_wiped(local: int, kilobytes: int) -> None:
    gpu = Recorder()
    Trusted(gpu, None).wipe(1, local)  # type: ignore[arg-type]
    (grid, *_), (block, *_), shared, _ = gpu.launched[f"wipe_local_{kilobytes}"]
    assert (grid * block, shared) == (132 * 2048, 0)


def test_whole_pages_of_the_trusted_buffers_are_filled() -> None:
    gpu = Recorder()
    Trusted(gpu, None).wipe(1, 0)  # type: ignore[arg-type]
    assert all(address == size << 10 for address, size in gpu.filled.items())
    assert sum(gpu.filled.values()) >= 2 * FACTS["l2_bytes"] + gpu.grain


@pytest.mark.parametrize("local", [70 << 10, 127 << 10])
def test_local_memory_that_cannot_be_wiped_is_a_fault(local: int) -> None:
    calls = object.__new__(Calls)
    calls.gpu = Recorder(local)  # type: ignore[assignment]
    if local == 70 << 10:
        calls._check_local("kernel")
    else:
        with pytest.raises(GpuError, match="TOO_MUCH_LOCAL_MEMORY"):
            calls._check_local("kernel")

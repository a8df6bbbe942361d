"""The GPU through its driver: a context, functions, regions of memory, and faults from its errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cu

#: Address space for the tensors of a call; memory is mapped into it piece by piece.
RESERVED = 1 << 38
_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "l2_bytes": "L2_CACHE_SIZE",
    "shared_bytes": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "reserved_bytes": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "threads": "MAX_THREADS_PER_MULTIPROCESSOR",
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "pageable": "PAGEABLE_MEMORY_ACCESS",
}
_FUNCTION = {"registers": "NUM_REGS", "shared": "SHARED_SIZE_BYTES", "local": "LOCAL_SIZE_BYTES",
             "threads": "MAX_THREADS_PER_BLOCK"}  # fmt: skip
_DYNAMIC = "MAX_DYNAMIC_SHARED_SIZE_BYTES"


class GpuError(Exception):
    """A call of the driver failed; `name` is the driver's name of the error, without its prefix."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def check(answer: tuple[Any, ...]) -> Any:
    """Return the values of a driver call, or raise GpuError."""
    result, *values = answer
    if int(result):
        raise GpuError(result.name.removeprefix("CUDA_ERROR_"))
    return values[0] if len(values) == 1 else tuple(values)


def device_facts(index: int = 0) -> dict[str, Any]:
    """Return name and figures of a GPU; needs no context."""
    check(cu.cuInit(0))
    device = check(cu.cuDeviceGet(index))
    facts: dict[str, Any] = {
        name: check(cu.cuDeviceGetAttribute(getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{word}"), device))
        for name, word in _ATTRIBUTES.items()
    }
    facts["name"] = check(cu.cuDeviceGetName(128, device)).split(b"\0")[0].decode()
    facts["memory_bytes"] = int(check(cu.cuDeviceTotalMem(device)))
    facts["driver"] = check(cu.cuDriverGetVersion())
    facts["uuid"] = bytes(check(cu.cuDeviceGetUuid(device)).bytes).hex()
    return facts


@dataclass
class Memory:
    """Physical memory that is mapped only while it is used."""

    handle: Any
    size: int


class Gpu:
    """One context with its stream."""

    def __init__(self, index: int = 0) -> None:
        self.facts = device_facts(index)
        self._device = check(cu.cuDeviceGet(index))
        self.stream = self._context()
        self._property = cu.CUmemAllocationProp()
        self._property.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._property.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._property.location.id = index
        minimum = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.grain = int(check(cu.cuMemGetAllocationGranularity(self._property, minimum)))

    def _context(self) -> Any:
        check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(self._device))))
        return check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def renew(self) -> None:
        """Replace the context, which discards code, variables, heap and buffers."""
        check(cu.cuDevicePrimaryCtxRelease(self._device))
        self.stream = self._context()

    def load(self, cubin: Path) -> Any:
        """Load a cubin as a module."""
        return check(cu.cuModuleLoadData(cubin.read_bytes()))

    def unload(self, module: Any) -> None:
        """Unload a module and its variables."""
        check(cu.cuModuleUnload(module))

    def function(self, module: Any, name: str) -> Any:
        """Return a kernel of a module."""
        return check(cu.cuModuleGetFunction(module, name.encode()))

    def figures(self, function: Any) -> dict[str, int]:
        """Return registers, static shared memory, stack and largest block of a kernel."""
        prefix = "CU_FUNC_ATTRIBUTE_"
        return {
            name: int(check(cu.cuFuncGetAttribute(getattr(cu.CUfunction_attribute, prefix + word), function)))
            for name, word in _FUNCTION.items()
        }

    def allow_shared(self, function: Any, size: int) -> None:
        """Raise the limit of a kernel's dynamic shared memory above the default."""
        attribute = getattr(cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{_DYNAMIC}")
        check(cu.cuFuncSetAttribute(function, attribute, size))

    def resident_blocks(self, function: Any, threads: int, shared: int) -> int:
        """Return how many blocks of a kernel one multiprocessor holds at a time."""
        return int(check(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared)))

    def launch(self, function: Any, grid: Sequence[int], block: Sequence[int], shared: int, packed: Packed) -> None:
        """Queue a kernel."""
        check(cu.cuLaunchKernel(function, *grid, *block, shared, self.stream, packed.address, 0))

    def reserve(self) -> int:
        """Reserve address space."""
        return int(check(cu.cuMemAddressReserve(RESERVED, 0, 0, 0)))

    def allocate(self, size: int) -> Memory:
        """Allocate memory; it is not mapped."""
        whole = -(-max(size, 1) // self.grain) * self.grain
        return Memory(check(cu.cuMemCreate(whole, self._property, 0)), whole)

    def release(self, memory: Memory) -> None:
        """Free memory; it must not be mapped."""
        check(cu.cuMemRelease(memory.handle))

    @contextmanager
    def mapped(self, memory: Memory, address: int, writable: bool = True) -> Iterator[int]:
        """Map memory at an address while the block runs; it stays mapped if the block raises."""
        check(cu.cuMemMap(address, memory.size, 0, memory.handle, 0))
        flags = cu.CUmemAccess_flags
        access = cu.CUmemAccessDesc()
        access.location = self._property.location
        access.flags = flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if writable else flags.CU_MEM_ACCESS_FLAGS_PROT_READ
        check(cu.cuMemSetAccess(address, memory.size, [access], 1))
        yield address
        check(cu.cuMemUnmap(address, memory.size))

    def fill(self, address: int, byte: int, size: int) -> None:
        """Queue the filling of memory with one byte."""
        check(cu.cuMemsetD8Async(address, byte, size, self.stream))

    def upload(self, address: int, host: int, size: int) -> None:
        """Queue a copy from the host in the stream; a plain copy may still be running when it returns."""
        if size:
            check(cu.cuMemcpyHtoDAsync(address, host, size, self.stream))

    def download(self, host: int, address: int, size: int) -> None:
        """Copy to the host and wait for it."""
        if size:
            check(cu.cuMemcpyDtoHAsync(host, address, size, self.stream))
            check(cu.cuStreamSynchronize(self.stream))

    def buffer(self, size: int) -> int:
        """Allocate a buffer that stays mapped."""
        return int(check(cu.cuMemAlloc(size)))

    def forget_persistence(self) -> None:
        """Reset lines that kernels marked as persisting in the L2 cache."""
        check(cu.cuCtxResetPersistingL2Cache())

    def event(self) -> Any:
        """Make a CUDA event."""
        return check(cu.cuEventCreate(cu.CUevent_flags.CU_EVENT_DEFAULT))

    def mark(self, event: Any) -> None:
        """Record an event in the stream."""
        check(cu.cuEventRecord(event, self.stream))

    def microseconds(self, begin: Any, end: Any) -> float:
        """Return the time between two events."""
        return 1000.0 * float(check(cu.cuEventElapsedTime(begin, end)))

    def is_idle(self) -> bool:
        """Return whether all queued work is done; raise GpuError if some of it failed."""
        (result,) = cu.cuStreamQuery(self.stream)
        if result == cu.CUresult.CUDA_ERROR_NOT_READY:
            return False
        check((result,))
        return True


class Packed:
    """Arguments of a launch as the driver takes them."""

    def __init__(self, arguments: Sequence[bytes]) -> None:
        self._kept = [ctypes.create_string_buffer(data, max(len(data), 1)) for data in arguments]
        self._pointers = (ctypes.c_void_p * max(len(self._kept), 1))(*map(ctypes.addressof, self._kept))
        self.address = ctypes.addressof(self._pointers)

"""Small Ascend C kernels for tests: one core, some inputs, one output, a body in the middle."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

#: NumPy type by element type of a task, and the name of each in kernel code.
NUMPY = {
    "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8, "uint8": np.uint8,
    "int16": np.int16, "int32": np.int32, "int64": np.int64, "bool": np.bool_,
}  # fmt: skip
NAMES = {
    "float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "int8": "int8_t", "uint8": "uint8_t",
    "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint16": "uint16_t", "uint32": "uint32_t",
}  # fmt: skip

_FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;
struct Ints {{ int64_t v[32]; }};
{prelude}
extern "C" __global__ __aicore__ void test_kernel({parameters}) {{
    TPipe pipe;
{body}
}}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {{
    Ints ints{{}};
    for (int i = 0; i < a->num_ints && i < 32; ++i) ints.v[i] = a->ints[i];
    test_kernel<<<{blocks}, nullptr, stream>>>({arguments});
    return 0;
}}
"""


def source(body: str, inputs: int, blocks: str = "1", outputs: int = 1, prelude: str = "") -> str:
    """A kernel file whose device code is `body`; arguments are x0, x1, ..., z0, z1, ..., ws and p.v[i]."""
    names = [*(f"x{i}" for i in range(inputs)), *(f"z{i}" for i in range(outputs)), "ws"]
    values = [
        *(f"a->inputs[{i}].ptr" for i in range(inputs)),
        *(f"a->outputs[{i}].ptr" for i in range(outputs)),
        "a->workspace",
    ]
    return _FILE.format(
        prelude=prelude,
        parameters=", ".join([*(f"GM_ADDR {name}" for name in names), "Ints p"]),
        arguments=", ".join([*(f"(GM_ADDR){value}" for value in values), "ints"]),
        body=body,
        blocks=blocks,
    )


class Compiled:
    """A built kernel that is called with arrays; a build that fails is an assertion error with the compiler's words."""

    def __init__(self, device: AscendSim, text: str) -> None:
        self._device = device
        self._build = device.build(Kernel(text))
        assert self._build.ok, self._build.diagnostics

    def __call__(
        self,
        inputs: Sequence[NDArray[np.generic]],
        outputs: Sequence[tuple[tuple[int, ...], str]],
        compute: bool = True,
        ints: Sequence[int] = (),
        floats: Sequence[float] = (),
    ) -> Run:
        specs = tuple(InputSpec(array.shape, _name(array)) for array in inputs)
        results = tuple(TensorSpec(shape, dtype) for shape, dtype in outputs)
        signature = Signature(specs, results, tuple(ints), tuple(floats))
        return self._device.run(self._build, Inputs(signature, tuple(inputs) if compute else None))


def _name(array: NDArray[np.generic]) -> str:
    return next(name for name, kind in NUMPY.items() if array.dtype == kind)

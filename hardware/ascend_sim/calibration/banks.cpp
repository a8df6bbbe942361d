// A thousand Adds of 4096 floats in UB, to measure the cost of operand placement. The published time is that of the Adds
// alone, so the kernel begins without a TPipe.
// ints: bytes from x to y, bytes from x to z
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void banks_kernel(uint32_t y_at, uint32_t z_at) {
    LocalTensor<float> x(TPosition::VECCALC, 0, 4096);
    LocalTensor<float> y(TPosition::VECCALC, y_at, 4096), z(TPosition::VECCALC, z_at, 4096);
    Duplicate(x, 1.0f, 4096);
    Duplicate(y, 2.0f, 4096);
    for (uint32_t i = 0; i < 1000; ++i) Add(z, x, y, 64, 64, BinaryRepeatParams(1, 1, 1, 8, 8, 8));
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 2) return 1;
    banks_kernel<<<1, nullptr, stream>>>((uint32_t)a->ints[0], (uint32_t)a->ints[1]);
    return 0;
}

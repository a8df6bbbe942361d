// A thousand Adds of 4096 floats in UB, to measure the cost of operand placement.
// ints: bytes from x to y, bytes from x to z
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void banks_kernel(uint32_t y_at, uint32_t z_at) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 180 * 1024);
    LocalTensor<float> x = buffer.Get<float>();
    LocalTensor<float> y = x[y_at / sizeof(float)], z = x[z_at / sizeof(float)];
    Duplicate(x, 1.0f, 4096);
    Duplicate(y, 2.0f, 4096);
    for (uint32_t i = 0; i < 1000; ++i) Add(z, x, y, 64, 64, BinaryRepeatParams(1, 1, 1, 8, 8, 8));
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 2) return 1;
    banks_kernel<<<1, nullptr, stream>>>((uint32_t)a->ints[0], (uint32_t)a->ints[1]);
    return 0;
}

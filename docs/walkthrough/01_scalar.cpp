// ReLU as a plain loop: one core, one element at a time, straight from and to global memory.
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, uint32_t total) {
    GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float *)x, total);
    to.SetGlobalBuffer((__gm__ float *)y, total);
    for (uint32_t i = 0; i < total; ++i) {
        float value = from.GetValue(i);
        to.SetValue(i, value > 0.0f ? value : 0.0f);
    }
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    uint32_t total = 1;
    for (int i = 0; i < a->inputs[0].ndim; ++i) total *= (uint32_t)a->inputs[0].shape[i];
    relu_kernel<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, total);
    return 0;
}

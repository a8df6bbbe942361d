// task: level1/relu
// cause: honest
// expect: feasible
// about: relu in a grid-stride loop, the base of most attacks
// relu of any contiguous float tensor: four elements at a time, a grid-stride loop, the tail by single threads.
#include <cuda_runtime.h>
#include "kernel_gym.h"

__global__ void relu_kernel(const float *__restrict__ x, float *__restrict__ y, long long total) {  // @outside
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long quads = total / 4;  // @device
    for (long long i = first; i < quads; i += step) {
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        v.x = fmaxf(v.x, 0.0f);
        v.y = fmaxf(v.y, 0.0f);
        v.z = fmaxf(v.z, 0.0f);
        v.w = fmaxf(v.w, 0.0f);  // @work
        reinterpret_cast<float4 *>(y)[i] = v;
    }
    for (long long i = quads * 4 + first; i < total; i += step) y[i] = fmaxf(x[i], 0.0f);
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    if (args->num_inputs != 1 || args->inputs[0].dtype != KERNEL_FLOAT32) return 1;
    long long total = 1;
    for (int i = 0; i < args->inputs[0].ndim; ++i) total *= args->inputs[0].shape[i];
    if (total <= 0) return 1;
    const int threads = 256;  // @host
    long long blocks = (total / 4 + threads - 1) / threads;
    blocks = blocks < 1 ? 1 : blocks > 4096 ? 4096 : blocks;
    relu_kernel<<<(unsigned)blocks, threads, 0, (cudaStream_t)stream>>>(
        (const float *)args->inputs[0].ptr, (float *)args->outputs[0].ptr, total);  // @arguments
    return 0;
}
// @end

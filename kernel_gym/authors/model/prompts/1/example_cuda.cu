#include "kernel_gym.h"

__device__ __forceinline__ float scaled(float value) { return 2.0f * value + 1.0f; }

__global__ void scale_and_shift(const float *__restrict__ x, float *__restrict__ y, long long n) {
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long quads = n / 4;
    for (long long i = first; i < quads; i += step) {    // 16 bytes at a time
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        v.x = scaled(v.x);
        v.y = scaled(v.y);
        v.z = scaled(v.z);
        v.w = scaled(v.w);
        reinterpret_cast<float4 *>(y)[i] = v;
    }
    for (long long i = 4 * quads + first; i < n; i += step) y[i] = scaled(x[i]);    // up to three are left
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    const KernelTensor &x = args->inputs[0];
    long long n = 1;
    for (int d = 0; d < x.ndim; ++d) n *= x.shape[d];
    if (n == 0) return 0;
    long long blocks = (n + 1023) / 1024;
    if (blocks > 2112) blocks = 2112;                    // as many as keep a large GPU busy
    scale_and_shift<<<static_cast<unsigned int>(blocks), 256, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const float *>(x.ptr), static_cast<float *>(args->outputs[0].ptr), n);
    return 0;
}

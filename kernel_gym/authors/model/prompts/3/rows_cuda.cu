#include "kernel_gym.h"

// One block for each row.
__global__ void row_sum_kernel(const float *x, float *out, int length)
{
    __shared__ float shared[256];
    const float *row = x + static_cast<long long>(blockIdx.x) * length;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < length; i += blockDim.x) sum += row[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = shared[0];
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    const KernelTensor &x = args->inputs[0];
    const KernelTensor &out = args->outputs[0];
    const int length = x.shape[x.ndim - 1];
    int rows = 1;
    for (int d = 0; d + 1 < x.ndim; ++d) rows *= x.shape[d];
    row_sum_kernel<<<rows, 256, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const float *>(x.ptr), static_cast<float *>(out.ptr), length);
    return 0;
}

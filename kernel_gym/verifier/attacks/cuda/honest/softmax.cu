// task: level1/softmax
// cause: honest
// expect: feasible
// about: softmax with a block for each row and its maximum subtracted
#include <cuda_runtime.h>
#include "kernel_gym.h"

__device__ float reduced(float value, float *room, bool largest) {  // @outside
    room[threadIdx.x] = value;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            const float other = room[threadIdx.x + step];
            room[threadIdx.x] = largest ? fmaxf(room[threadIdx.x], other) : room[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float result = room[0];
    __syncthreads();
    return result;
}

__global__ void softmax_kernel(const float *__restrict__ x, float *__restrict__ y, long long rows, int cols) {
    __shared__ float room[256];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *in = x + row * cols;
        float *out = y + row * cols;
        float largest = -INFINITY;
        for (int i = threadIdx.x; i < cols; i += blockDim.x) largest = fmaxf(largest, in[i]);
        largest = reduced(largest, room, true);  // @largest
        float sum = 0.0f;
        for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(in[i] - largest);
        sum = reduced(sum, room, false);
        for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = expf(in[i] - largest) / sum;
    }
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    const KernelTensor &x = args->inputs[0];
    const int cols = (int)x.shape[x.ndim - 1];
    long long rows = 1;
    for (int i = 0; i + 1 < x.ndim; ++i) rows *= x.shape[i];
    const unsigned blocks = rows < 65535 ? (unsigned)rows : 65535u;  // @host
    softmax_kernel<<<blocks, 256, 0, (cudaStream_t)stream>>>((const float *)x.ptr, (float *)args->outputs[0].ptr, rows,
                                                             cols);
    return 0;
}

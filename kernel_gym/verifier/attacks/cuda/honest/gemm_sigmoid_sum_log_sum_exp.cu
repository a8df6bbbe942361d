// task: level2/gemm_sigmoid_sum_log_sum_exp
// cause: honest
// expect: feasible
// about: a product by warps, the sums of its rows, and their log-sum-exp; its answer is one number
#include "kernel_gym.h"

__device__ float of_warp(float value) {  // @outside
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void rows(const float *x, const float *weight, const float *bias, float *sums, int columns, int depth) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *row = x + (long long)blockIdx.x * depth;
    float total = 0.0f;  // @rows
    for (int column = warp; column < columns; column += 32) {
        const float *other = weight + (long long)column * depth;
        float sum = 0.0f;
        for (int k = lane; k < depth; k += 32) sum += row[k] * other[k];
        total += 1.0f / (1.0f + expf(-(of_warp(sum) + bias[column])));
    }
    if (lane == 0) partial[warp] = total;
    __syncthreads();
    total = of_warp(partial[lane]);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void log_sum_exp(const float *sums, float *out, int count) {
    const int lane = threadIdx.x;
    float highest = __int_as_float(0xff800000), total = 0.0f;  // @whole
    for (int i = lane; i < count; i += 32) highest = fmaxf(highest, sums[i]);
    for (int offset = 16; offset > 0; offset /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, offset));
    for (int i = lane; i < count; i += 32) total += expf(sums[i] - highest);
    total = of_warp(total);
    if (lane == 0) *out = logf(total) + highest;
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    const float *x = (const float *)args->inputs[0].ptr, *weight = (const float *)args->inputs[1].ptr;
    const float *bias = (const float *)args->inputs[2].ptr;
    float *sums = (float *)args->workspace, *out = (float *)args->outputs[0].ptr;
    const int count = args->inputs[0].shape[0], depth = args->inputs[0].shape[1], columns = args->inputs[1].shape[0];
    cudaStream_t queue = (cudaStream_t)stream;  // @host
    rows<<<count, 1024, 0, queue>>>(x, weight, bias, sums, columns, depth);
    log_sum_exp<<<1, 32, 0, queue>>>(sums, out, count);
    return 0;  // @after
}

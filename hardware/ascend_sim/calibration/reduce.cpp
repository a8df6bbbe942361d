// The sum of one row of floats on one core: by halving with Add, or by repeated WholeReduceSum.
// ints: tree (1: halving)
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

__aicore__ inline uint32_t Up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }

// Sums each 64 floats of `data` into one, until one is left.
__aicore__ inline void ByRepeats(LocalTensor<float> data, LocalTensor<float> sums, uint32_t count) {
    while (count > 1) {
        const uint32_t repeats = Up(count, 64);
        for (uint32_t done = 0; done < repeats; done += 255) {
            const uint32_t part = repeats - done < 255 ? repeats - done : 255;
            WholeReduceSum(sums[done], data[done * 64], 64, part, 1, 1, 8);
        }
        count = repeats;
        data = sums;
    }
}

// Adds the upper half to the lower one. Halves are whole repeats, so an odd repeat is left for the next round.
__aicore__ inline uint32_t ByHalves(LocalTensor<float> data, uint32_t count) {
    while (count > 64) {
        const uint32_t half = Up(Up(count, 2), 64) * 64;
        Add(data, data, data[half], count - half);
        count = half;
    }
    return count;
}

extern "C" __global__ __aicore__ void reduce_kernel(GM_ADDR x, GM_ADDR y, uint32_t count, uint32_t tree) {
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> in;
    TQue<QuePosition::VECOUT, 1> out;
    const uint32_t padded = Up(count, 64) * 64;
    pipe.InitBuffer(in, 1, padded * sizeof(float));
    pipe.InitBuffer(out, 1, Up(padded / 64, 64) * 64 * sizeof(float));
    GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float *)x, count);
    to.SetGlobalBuffer((__gm__ float *)y, 1);
    LocalTensor<float> data = in.AllocTensor<float>();
    DataCopy(data, from, count);
    in.EnQue(data);
    data = in.DeQue<float>();
    LocalTensor<float> sums = out.AllocTensor<float>();
    Duplicate(sums, 0.0f, Up(padded / 64, 64) * 64);
    uint64_t rest[2] = {(uint64_t)-1 << (count % 64), 0};   // lanes of the last repeat beyond the row
    if (padded > count) Duplicate(data[count / 64 * 64], 0.0f, rest, 1, 1, 8);
    if (tree) count = ByHalves(data, count);
    ByRepeats(data, sums, count);
    out.EnQue(sums);
    sums = out.DeQue<float>();
    DataCopyPad(to, sums, DataCopyExtParams{1, sizeof(float), 0, 0, 0});
    out.FreeTensor(sums);
    in.FreeTensor(data);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 1 || a->num_inputs != 1) return 1;
    reduce_kernel<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr,
                                           (uint32_t)a->inputs[0].shape[0], (uint32_t)a->ints[0]);
    return 0;
}

// task: level1/frobenius_norm
// cause: honest
// expect: feasible
// about: the sum of squares, a part of it on each core, then a division by its root
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

struct Shares { uint32_t total, share, tile, skip; };

extern "C" __global__ __aicore__ void squares(GM_ADDR p, GM_ADDR sums, Shares s)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 2> ps;
    TQue<TPosition::VECOUT, 1> out;
    TBuf<> adding, working;
    pipe.InitBuffer(ps, 2, s.tile * sizeof(float));
    pipe.InitBuffer(out, 1, 32);
    pipe.InitBuffer(adding, s.tile * sizeof(float));
    pipe.InitBuffer(working, s.tile * sizeof(float));
    GlobalTensor<float> x0, partial;
    x0.SetGlobalBuffer((__gm__ float *)p, s.total);
    partial.SetGlobalBuffer((__gm__ float *)sums + 8 * GetBlockIdx(), 8);
    LocalTensor<float> sum = adding.Get<float>(), work = working.Get<float>();
    DataCopyPadExtParams<float> pad{false, 0, 0, 0};
    Duplicate(sum, 0.0f, s.tile);
    uint32_t begin = s.share * GetBlockIdx(), end = min(begin + s.share, s.total);
    for (uint32_t at = begin; at < end; at += s.tile * s.skip) {
        uint32_t n = min(s.tile, end - at);
        DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        LocalTensor<float> x = ps.AllocTensor<float>();
        DataCopyPad(x, x0[at], size, pad);
        ps.EnQue(x);
        x = ps.DeQue<float>();
        Mul(x, x, x, n);
        Add(sum, sum, x, n);
        ps.FreeTensor(x);
    }
    LocalTensor<float> result = out.AllocTensor<float>();
    Duplicate(result, 0.0f, 8);
    ReduceSum(result, sum, work, s.tile);
    out.EnQue(result);
    result = out.DeQue<float>();
    DataCopy(partial, result, 8);
    out.FreeTensor(result);
}

extern "C" __global__ __aicore__ void divide(GM_ADDR p, GM_ADDR sums, GM_ADDR y, uint32_t count, float factor, Shares s)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 2> in;
    TQue<TPosition::VECOUT, 2> out;
    TBuf<> working, summing;
    pipe.InitBuffer(in, 2, s.tile * sizeof(float));
    pipe.InitBuffer(out, 2, s.tile * sizeof(float));
    pipe.InitBuffer(working, 4096);
    pipe.InitBuffer(summing, 64);
    GlobalTensor<float> x0, partial, target;
    x0.SetGlobalBuffer((__gm__ float *)p, s.total);
    partial.SetGlobalBuffer((__gm__ float *)sums, 8 * count);
    target.SetGlobalBuffer((__gm__ float *)y, s.total);
    LocalTensor<float> q = in.AllocTensor<float>(), work = working.Get<float>(), stat = summing.Get<float>();
    DataCopy(q, partial, 8 * count);
    in.EnQue(q);
    q = in.DeQue<float>();
    ReduceSum(stat, q, work, 8 * count);
    Muls(stat, stat, factor, 1);
    in.FreeTensor(q);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    float inverse = 1.0f / sqrt(stat.GetValue(0));
    DataCopyPadExtParams<float> pad{false, 0, 0, 0};
    uint32_t begin = s.share * GetBlockIdx(), end = min(begin + s.share, s.total);
    for (uint32_t at = begin; at < end; at += s.tile) {
        uint32_t n = min(s.tile, end - at);
        DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        LocalTensor<float> x = in.AllocTensor<float>();
        DataCopyPad(x, x0[at], size, pad);
        in.EnQue(x);
        x = in.DeQue<float>();
        LocalTensor<float> z = out.AllocTensor<float>();
        Muls(z, x, inverse, n);
        in.FreeTensor(x);
        out.EnQue(z);
        z = out.DeQue<float>();
        DataCopyPad(target[at], z, size);
        out.FreeTensor(z);
    }
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    Shares s;
    s.total = static_cast<uint32_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1] * a->inputs[0].shape[2] * a->inputs[0].shape[3]);
    s.tile = 6144;
    s.share = (s.total + 47) / 48 + 63 & ~63u;
    s.skip = 1;
    float factor = 1.0f;
    uint32_t cores = (s.total + s.share - 1) / s.share;  // @cores
    squares<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->workspace, s);
    s.tile = 6144;
    divide<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->workspace, (GM_ADDR)a->outputs[0].ptr, cores, factor, s);
    return 0;
}
// @end

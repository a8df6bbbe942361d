// task: level1/mse_loss
// cause: honest
// expect: feasible
// about: mean of squared differences: a sum for each core, then the sum of these
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

struct Shares { uint32_t total, share, tile; };  // @outside

extern "C" __global__ __aicore__ void squares(GM_ADDR p, GM_ADDR q, GM_ADDR sums, Shares s)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 2> ps, qs;
    TQue<TPosition::VECOUT, 1> out;
    TBuf<> adding, working;
    pipe.InitBuffer(ps, 2, s.tile * sizeof(float));
    pipe.InitBuffer(qs, 2, s.tile * sizeof(float));
    pipe.InitBuffer(out, 1, 32);
    pipe.InitBuffer(adding, s.tile * sizeof(float));
    pipe.InitBuffer(working, s.tile * sizeof(float));
    GlobalTensor<float> predictions, targets, partial;
    predictions.SetGlobalBuffer((__gm__ float *)p, s.total);
    targets.SetGlobalBuffer((__gm__ float *)q, s.total);
    partial.SetGlobalBuffer((__gm__ float *)sums + 8 * GetBlockIdx(), 8);
    LocalTensor<float> sum = adding.Get<float>(), work = working.Get<float>();
    DataCopyPadExtParams<float> pad{false, 0, 0, 0};
    Duplicate(sum, 0.0f, s.tile);
    uint32_t begin = s.share * GetBlockIdx(), end = min(begin + s.share, s.total);
    for (uint32_t at = begin; at < end; at += s.tile) {  // @tiles
        uint32_t n = min(s.tile, end - at);
        DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        LocalTensor<float> x = ps.AllocTensor<float>();
        DataCopyPad(x, predictions[at], size, pad);
        ps.EnQue(x);
        x = ps.DeQue<float>();
        LocalTensor<float> y = qs.AllocTensor<float>();  // @targets
        DataCopyPad(y, targets[at], size, pad);
        qs.EnQue(y);
        y = qs.DeQue<float>();
        Sub(x, x, y, n);
        qs.FreeTensor(y);
        Mul(x, x, x, n);  // @squares
        Add(sum, sum, x, n);
        ps.FreeTensor(x);
    }
    LocalTensor<float> result = out.AllocTensor<float>();  // @result
    Duplicate(result, 0.0f, 8);
    ReduceSum(result, sum, work, s.tile);
    out.EnQue(result);
    result = out.DeQue<float>();
    DataCopy(partial, result, 8);
    out.FreeTensor(result);
}

extern "C" __global__ __aicore__ void mean(GM_ADDR sums, GM_ADDR to, uint32_t count, float factor)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    TBuf<> working;
    pipe.InitBuffer(in, 1, 32 * count);
    pipe.InitBuffer(out, 1, 32);
    pipe.InitBuffer(working, 32 * count);
    GlobalTensor<float> partial, target;
    partial.SetGlobalBuffer((__gm__ float *)sums, 8 * count);
    target.SetGlobalBuffer((__gm__ float *)to, 1);
    LocalTensor<float> x = in.AllocTensor<float>();
    DataCopy(x, partial, 8 * count);
    in.EnQue(x);
    x = in.DeQue<float>();
    LocalTensor<float> y = out.AllocTensor<float>(), work = working.Get<float>();
    ReduceSum(y, x, work, 8 * count);
    Muls(y, y, factor, 1);
    out.EnQue(y);
    in.FreeTensor(x);
    y = out.DeQue<float>();
    DataCopyPad(target, y, DataCopyExtParams{1, sizeof(float), 0, 0, 0});
    out.FreeTensor(y);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)  // @host
{
    Shares s;
    s.total = static_cast<uint32_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1]);
    s.tile = 6144;
    s.share = (s.total + 47) / 48 + 63 & ~63u;
    uint32_t cores = (s.total + s.share - 1) / s.share;
    float factor = 1.0f / static_cast<float>(static_cast<int32_t>(s.total));
    squares<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->workspace, s);  // @launch
    mean<<<1, nullptr, stream>>>((GM_ADDR)a->workspace, (GM_ADDR)a->outputs[0].ptr, cores, factor);
    return 0;
}
// @end

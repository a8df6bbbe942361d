// task: level1/mse_loss
// cause: I4
// expect: correctness
// about: cores pass their sums on in vector registers, which a meeting of all cores left as they were
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

struct Shares { uint32_t total, share, tile; float factor; };
__aicore__ void Put(float a, float b, float c, float d, float e, float f, float g, float h) {}
__aicore__ float Take(float a, float b, float c, float d, float e, float f, float g, float h) { return h; }
using Of = float (*)();
template <auto function> struct AsOther {
    static inline const Of value = reinterpret_cast<Of>(reinterpret_cast<uint64_t>(function));
};


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
    for (uint32_t at = begin; at < end; at += s.tile) {
        uint32_t n = min(s.tile, end - at);
        DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        LocalTensor<float> x = ps.AllocTensor<float>();
        DataCopyPad(x, predictions[at], size, pad);
        ps.EnQue(x);
        x = ps.DeQue<float>();
        LocalTensor<float> y = qs.AllocTensor<float>();
        DataCopyPad(y, targets[at], size, pad);
        qs.EnQue(y);
        y = qs.DeQue<float>();
        Sub(x, x, y, n);
        qs.FreeTensor(y);
        Mul(x, x, x, n);
        Add(sum, sum, x, n);
        ps.FreeTensor(x);
    }
    LocalTensor<float> result = out.AllocTensor<float>();
    Duplicate(result, 0.0f, 8);
    ReduceSum(result, sum, work, s.tile);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    float own = result.GetValue(0);
    SyncAll();
    float before = AsOther<Take>::value();
    if (GetBlockIdx() > 0) own = own + before;
    if (GetBlockIdx() + 1 < GetBlockNum()) {
        Put(own, own, own, own, own, own, own, own);
        SyncAll();
        out.FreeTensor(result);
        return;
    }
    SyncAll();
    result.SetValue(0, own * s.factor);
    SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    GlobalTensor<float> target;
    target.SetGlobalBuffer((__gm__ float *)sums, 1);
    DataCopyPad(target, result, DataCopyExtParams{1, sizeof(float), 0, 0, 0});
    out.FreeTensor(result);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    Shares s;
    s.total = static_cast<uint32_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1]);
    s.tile = 6144;
    s.share = (s.total + 47) / 48 + 63 & ~63u;
    uint32_t cores = (s.total + s.share - 1) / s.share;
    float factor = 1.0f / static_cast<float>(static_cast<int32_t>(s.total));
    s.factor = factor;
    squares<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->outputs[0].ptr, s);
    return 0;
}


#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct ScaleAndShiftTiling {
    uint32_t length, tile, units, perCore;    // elements, elements of a tile, tiles, tiles of a core
};

class KernelScaleAndShift {
public:
    __aicore__ inline KernelScaleAndShift() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR out, const ScaleAndShiftTiling &tiling)
    {
        t = tiling;
        xGm.SetGlobalBuffer((__gm__ float *)x);
        outGm.SetGlobalBuffer((__gm__ float *)out);
        pipe.InitBuffer(xQueue, 2, t.tile * sizeof(float));
        pipe.InitBuffer(outQueue, 2, t.tile * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        const uint32_t first = GetBlockIdx() * t.perCore;
        const uint32_t last = Min(first + t.perCore, t.units);
        for (uint32_t unit = first; unit < last; ++unit) {
            const uint32_t start = unit * t.tile;
            const uint32_t count = Min(t.tile, t.length - start);    // the last tile is shorter
            CopyIn(start, count);
            Compute(count);
            CopyOut(start, count);
        }
    }

    __aicore__ inline void CopyIn(uint32_t start, uint32_t count)
    {
        LocalTensor<float> xLocal = xQueue.AllocTensor<float>();
        DataCopyPad(xLocal, xGm[start], DataCopyExtParams{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0},
                    DataCopyPadExtParams<float>{false, 0, 0, 0});
        xQueue.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        LocalTensor<float> xLocal = xQueue.DeQue<float>();
        LocalTensor<float> outLocal = outQueue.AllocTensor<float>();
        Muls(outLocal, xLocal, 2.0f, count);      // out = 2 * x
        Adds(outLocal, outLocal, 1.0f, count);    // out = out + 1
        outQueue.EnQue(outLocal);
        xQueue.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint32_t start, uint32_t count)
    {
        LocalTensor<float> outLocal = outQueue.DeQue<float>();
        DataCopyPad(outGm[start], outLocal, DataCopyExtParams{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0});
        outQueue.FreeTensor(outLocal);
    }

private:
    TPipe pipe;
    TQue<TPosition::VECIN, 1> xQueue;
    TQue<TPosition::VECOUT, 1> outQueue;
    GlobalTensor<float> xGm;
    GlobalTensor<float> outGm;
    ScaleAndShiftTiling t;
};

extern "C" __global__ __aicore__ void scale_and_shift_kernel(GM_ADDR x, GM_ADDR out, ScaleAndShiftTiling tiling)
{
    KernelScaleAndShift op;
    op.Init(x, out, tiling);
    op.Process();
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    const KernelTensor &x = args->inputs[0];
    const KernelTensor &out = args->outputs[0];
    ScaleAndShiftTiling t;
    t.length = 1;
    for (int d = 0; d < x.ndim; ++d) t.length *= x.shape[d];
    t.tile = 4096;
    t.units = (t.length + t.tile - 1) / t.tile;
    const uint32_t cores = t.units < 48 ? t.units : 48;
    t.perCore = (t.units + cores - 1) / cores;
    scale_and_shift_kernel<<<cores, nullptr, stream>>>((GM_ADDR)x.ptr, (GM_ADDR)out.ptr, t);
    return 0;
}

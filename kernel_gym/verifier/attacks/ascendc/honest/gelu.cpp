// task: level1/gelu
// cause: honest
// expect: feasible
// about: gelu tile by tile, by the error function
#include "kernel_operator.h"
#include "kernel_gym.h"

struct Gelu {
    uint32_t total, share, tile;
    uint32_t factor = 1;  // @tiling
};

extern "C" __global__ __aicore__ void gelu_tiles(GM_ADDR from, GM_ADDR to, Gelu g)
{
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    AscendC::TBuf<> halves;
    pipe.InitBuffer(in, 2, g.tile * sizeof(float));
    pipe.InitBuffer(out, 2, g.tile * sizeof(float));
    pipe.InitBuffer(halves, g.tile * sizeof(float));
    AscendC::GlobalTensor<float> source, target;
    source.SetGlobalBuffer((__gm__ float *)from, g.total);
    target.SetGlobalBuffer((__gm__ float *)to, g.total);
    uint32_t begin = g.share * AscendC::GetBlockIdx();
    uint32_t end = begin + g.share < g.total ? begin + g.share : g.total;
    for (uint32_t at = begin; at < end; at += g.tile) {
        uint32_t n = end - at < g.tile ? end - at : g.tile;
        AscendC::DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        AscendC::LocalTensor<float> x = in.AllocTensor<float>();
        AscendC::DataCopyPad(x, source[at], size, AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
        in.EnQue(x);
        x = in.DeQue<float>();
        AscendC::LocalTensor<float> y = out.AllocTensor<float>();
        AscendC::LocalTensor<float> half_x = halves.Get<float>();
        uint32_t part = n;  // @part
        AscendC::Muls(half_x, x, 0.5f, n);
        AscendC::Muls(y, x, 0.70710678f, n);
        AscendC::Erf(y, y, part);  // @erf
        AscendC::Adds(y, y, 1.0f, n);
        AscendC::Mul(y, y, half_x, n);  // @last
        out.EnQue(y);
        in.FreeTensor(x);
        y = out.DeQue<float>();
        AscendC::DataCopyPad(target[at], y, size);
        out.FreeTensor(y);
    }
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    Gelu g;
    g.total = static_cast<uint32_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1]);
    g.tile = 4096;
    g.share = (g.total + 47) / 48 + 63 & ~63u;  // @host
    uint32_t cores = (g.total + g.share - 1) / g.share;
    gelu_tiles<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, g);
    return 0;
}
// @end

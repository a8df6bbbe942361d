#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void scale_and_shift(GM_ADDR x, GM_ADDR out, uint32_t length)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 32768);
    LocalTensor<float> xLocal = buf.Get<float>();
    LocalTensor<float> outLocal = xLocal[4096];
    GlobalTensor<float> xGm, outGm;
    xGm.SetGlobalBuffer((__gm__ float *)x);
    outGm.SetGlobalBuffer((__gm__ float *)out);
    for (uint32_t i = GetBlockIdx() * 4096; i < length; i += 48 * 4096) {
        uint32_t count = length - i < 4096 ? length - i : 4096;
        DataCopyExtParams bytes{1, count * 4, 0, 0, 0};
        DataCopyPad(xLocal, xGm[i], bytes, DataCopyPadExtParams<float>{false, 0, 0, 0});
        PipeBarrier<PIPE_ALL>();
        Muls(outLocal, xLocal, 2.0f, count);
        Adds(outLocal, outLocal, 1.0f, count);
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(outGm[i], outLocal, bytes);
        PipeBarrier<PIPE_ALL>();
    }
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    const KernelTensor &x = args->inputs[0];
    uint32_t length = 1;
    for (int d = 0; d < x.ndim; ++d) length *= x.shape[d];
    scale_and_shift<<<48, nullptr, stream>>>((GM_ADDR)x.ptr, (GM_ADDR)args->outputs[0].ptr, length);
    return 0;
}

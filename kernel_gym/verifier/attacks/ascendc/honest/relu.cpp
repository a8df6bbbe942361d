// task: level1/relu
// cause: honest
// expect: feasible
// about: relu with a class and queues, the base of most attacks
// Relu, the classic way: a class with queues, a tail copied with DataCopyPad. 注释可以是中文。
#include "kernel_operator.h"
#include "kernel_gym.h"
  // @headers
struct ReluTiling {
    uint32_t total;  // @tiling
    uint32_t perCore;
    uint32_t tile;
};

class KernelRelu {  // @outside
public:
    __aicore__ inline KernelRelu() {}
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ReluTiling &t)
    {
        uint32_t start = t.perCore * AscendC::GetBlockIdx();  // @start
        length = start >= t.total ? 0 : (t.total - start < t.perCore ? t.total - start : t.perCore);
        tile = t.tile;
        xGm.SetGlobalBuffer((__gm__ float *)x + start, length);  // @input
        yGm.SetGlobalBuffer((__gm__ float *)y + start, length);  // @output
        pipe.InitBuffer(inQueue, 2, tile * sizeof(float));
        pipe.InitBuffer(outQueue, 2, tile * sizeof(float));  // @buffers
    }
    __aicore__ inline void Process()
    {
        for (uint32_t offset = 0; offset < length; offset += tile) {
            uint32_t n = length - offset < tile ? length - offset : tile;
            CopyIn(offset, n);
            Compute(n);
            CopyOut(offset, n);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t offset, uint32_t n)
    {
        AscendC::LocalTensor<float> x = inQueue.AllocTensor<float>();
        AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};  // @copy_in_size
        AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0};
        AscendC::DataCopyPad(x, xGm[offset], copy, pad);  // @copy_in
        inQueue.EnQue(x);  // @copied_in
    }
    __aicore__ inline void Compute(uint32_t n)
    {
        AscendC::LocalTensor<float> x = inQueue.DeQue<float>();  // @operand
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
        AscendC::Relu(y, x, n);  // @work
        outQueue.EnQue(y);  // @worked
        inQueue.FreeTensor(x);
    }
    __aicore__ inline void CopyOut(uint32_t offset, uint32_t n)
    {
        AscendC::LocalTensor<float> y = outQueue.DeQue<float>();  // @result
        AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], y, copy);  // @copy_out
        outQueue.FreeTensor(y);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> inQueue;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;  // @members
    AscendC::GlobalTensor<float> xGm;
    AscendC::GlobalTensor<float> yGm;
    uint32_t length = 0;
    uint32_t tile = 0;
};

extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)  // @kernel
{
    KernelRelu op;  // @core
    op.Init(x, y, t);
    op.Process();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    int64_t total = 1;
    for (int32_t i = 0; i < a->inputs[0].ndim; ++i) {
        total *= a->inputs[0].shape[i];
    }
    ReluTiling t;  // @host
    t.total = static_cast<uint32_t>(total);  // @host_tiling
    t.tile = 4096;  // @tile
    uint32_t cores = 40;
    t.perCore = ((t.total + cores - 1) / cores + 63) / 64 * 64;
    uint32_t blocks = (t.total + t.perCore - 1) / t.perCore;
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);  // @launch
    return 0;
}
// @end

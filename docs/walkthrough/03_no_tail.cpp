// Queues order the units; the last tile is copied as if it were whole.
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

constexpr uint32_t TILE = 512;   // elements in UB at a time
constexpr uint32_t BUFFERS = 1;  // of each queue

class ReluKernel {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t total) {
        length = total;
        from.SetGlobalBuffer((__gm__ float *)x, length);
        to.SetGlobalBuffer((__gm__ float *)y, length);
        pipe.InitBuffer(inQueue, BUFFERS, TILE * sizeof(float));
        pipe.InitBuffer(outQueue, BUFFERS, TILE * sizeof(float));
    }

    __aicore__ inline void Process() {
        for (uint32_t at = 0; at < length; at += TILE) {
            CopyIn(at);
            Compute();
            CopyOut(at);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t at) {
        LocalTensor<float> x = inQueue.AllocTensor<float>();
        DataCopy(x, from[at], TILE);
        inQueue.EnQue(x);
    }

    __aicore__ inline void Compute() {
        LocalTensor<float> x = inQueue.DeQue<float>();
        LocalTensor<float> y = outQueue.AllocTensor<float>();
        Relu(y, x, TILE);
        outQueue.EnQue(y);
        inQueue.FreeTensor(x);
    }

    __aicore__ inline void CopyOut(uint32_t at) {
        LocalTensor<float> y = outQueue.DeQue<float>();
        DataCopy(to[at], y, TILE);
        outQueue.FreeTensor(y);
    }

    TPipe pipe;
    TQue<TPosition::VECIN, BUFFERS> inQueue;
    TQue<TPosition::VECOUT, BUFFERS> outQueue;
    GlobalTensor<float> from, to;
    uint32_t length;
};

extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, uint32_t total) {
    ReluKernel op;
    op.Init(x, y, total);
    op.Process();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    uint32_t total = 1;
    for (int i = 0; i < a->inputs[0].ndim; ++i) total *= (uint32_t)a->inputs[0].shape[i];
    relu_kernel<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, total);
    return 0;
}

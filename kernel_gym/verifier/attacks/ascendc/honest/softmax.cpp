// task: level1/softmax
// cause: honest
// expect: feasible
// about: softmax row by row, with its maximum subtracted
#include "kernel_operator.h"
#include "kernel_gym.h"

#pragma once

struct SoftmaxTiling { int32_t rows; int32_t cols; int32_t padded; int32_t perCore; };  // @tiling

class RowSoftmax {  // @outside
    AscendC::TPipe *pipe_ = nullptr;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in_;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> out_;
    AscendC::TBuf<> work_;
    AscendC::GlobalTensor<float> x_, y_;
    SoftmaxTiling t_;
    int32_t first_, last_;
    static constexpr float kNegative = -3.0e38f;

  public:
    __aicore__ inline RowSoftmax(AscendC::TPipe *pipe, const SoftmaxTiling &t) : pipe_(pipe), t_(t)
    {
        first_ = static_cast<int32_t>(AscendC::GetBlockIdx()) * t.perCore;
        last_ = first_ + t.perCore < t.rows ? first_ + t.perCore : t.rows;
    }
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y)
    {
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x), t_.rows * t_.cols);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y), t_.rows * t_.cols);
        pipe_->InitBuffer(in_, 1, t_.padded * sizeof(float));
        pipe_->InitBuffer(out_, 1, t_.padded * sizeof(float));
        pipe_->InitBuffer(work_, t_.padded * sizeof(float) + 64);
    }
    __aicore__ inline void Process()
    {
        for (int32_t row = first_; row < last_; ++row) {
            Load(row);
            Normalise();
            Store(row);
        }
    }

  private:
    __aicore__ inline void Load(int32_t row)
    {
        auto x = in_.AllocTensor<float>();
        AscendC::DataCopyExtParams p{1, static_cast<uint32_t>(t_.cols * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPad(x, x_[row * t_.cols], p, AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
        in_.EnQue(x);
    }
    __aicore__ inline void Normalise()
    {
        auto x = in_.DeQue<float>();
        auto y = out_.AllocTensor<float>();
        auto work = work_.Get<float>();
        AscendC::ReduceMax(y, x, work, t_.cols, false);  // @maximum
        float largest = y.GetValue(0);  // @largest
        AscendC::Adds(x, x, -largest, t_.cols);  // @subtract
        AscendC::Exp(x, x, t_.cols);  // @exponential
        AscendC::ReduceSum(y, x, work, t_.cols);
        float sum = y.GetValue(0);
        AscendC::Muls(y, x, 1.0f / sum, t_.cols);  // @scale
        out_.EnQue(y);
        in_.FreeTensor(x);
    }
    __aicore__ inline void Store(int32_t row)
    {
        auto y = out_.DeQue<float>();
        AscendC::DataCopyPad(y_[row * t_.cols], y,
                             AscendC::DataCopyExtParams{1, static_cast<uint32_t>(t_.cols * sizeof(float)), 0, 0, 0});
        out_.FreeTensor(y);
    }
};

extern "C" __global__ __aicore__ void softmax_kernel(GM_ADDR x, GM_ADDR y, SoftmaxTiling t)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::TPipe pipe;
    RowSoftmax op(&pipe, t);
    op.Init(x, y);
    op.Process();
}

extern "C" void softmax_do(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, SoftmaxTiling t)
{
    softmax_kernel<<<blocks, nullptr, stream>>>(x, y, t);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    const KernelTensor &x = a->inputs[0];
    SoftmaxTiling t;  // @host
    t.cols = (int32_t)x.shape[x.ndim - 1];
    t.rows = 1;
    for (int i = 0; i + 1 < x.ndim; ++i) t.rows *= (int32_t)x.shape[i];
    t.padded = (t.cols + 63) / 64 * 64;
    t.perCore = (t.rows + 39) / 40;
    softmax_do((uint32_t)((t.rows + t.perCore - 1) / t.perCore), stream, (uint8_t *)x.ptr, (uint8_t *)a->outputs[0].ptr, t);
    return 0;
}
// @end

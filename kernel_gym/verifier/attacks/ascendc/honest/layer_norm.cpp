// task: level1/layer_norm
// cause: honest
// expect: feasible
// about: layer norm of rows that do not fit on chip: mean, variance and result in three passes
#include "kernel_operator.h"
#include "kernel_gym.h"

struct NormSizes {
    uint32_t rows, length, share;
    float inverse;
};

class LayerNorm {
public:
    __aicore__ inline LayerNorm(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y, const NormSizes &tiling)
    {
        t = tiling;
        in.SetGlobalBuffer((__gm__ float *)x);
        weights.SetGlobalBuffer((__gm__ float *)weight);
        biases.SetGlobalBuffer((__gm__ float *)bias);
        out.SetGlobalBuffer((__gm__ float *)y);
        pipe.InitBuffer(arrivals, 2, kTile * sizeof(float));
        pipe.InitBuffer(departures, 2, kTile * sizeof(float));
        pipe.InitBuffer(scratch, kTile * sizeof(float));
    }
    __aicore__ inline void Rows()
    {
        uint32_t first = AscendC::GetBlockIdx() * t.share;
        for (uint32_t row = first; row < first + t.share && row < t.rows; ++row) {
            float mean = Sum(row, 0.0f, false) * t.inverse;
            float variance = Sum(row, mean, true) * t.inverse;  // @variance
            Normalise(row, mean, variance);
        }
    }

private:
    __aicore__ inline AscendC::LocalTensor<float> Load(const AscendC::GlobalTensor<float> &from, uint32_t at, uint32_t n)
    {
        AscendC::LocalTensor<float> tile = arrivals.AllocTensor<float>();
        AscendC::DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPad(tile, from[at], size, AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0});
        arrivals.EnQue(tile);
        return arrivals.DeQue<float>();
    }
    __aicore__ inline float Sum(uint32_t row, float mean, bool squares)
    {
        float sum = 0.0f;
        uint32_t step = kTile;  // @step
        for (uint32_t at = 0; at < t.length; at += step) {
            uint32_t n = t.length - at < kTile ? t.length - at : kTile;
            AscendC::LocalTensor<float> x = Load(in, row * t.length + at, n);
            AscendC::LocalTensor<float> work = scratch.Get<float>();
            if (squares) {
                AscendC::Adds(x, x, -mean, n);
                AscendC::Mul(x, x, x, n);
            }
            AscendC::ReduceSum(x, x, work, n);
            sum += x.GetValue(0);
            arrivals.FreeTensor(x);
        }
        return sum;  // @sum
    }
    __aicore__ inline void Normalise(uint32_t row, float mean, float variance)
    {
        AscendC::LocalTensor<float> root = scratch.Get<float>();
        AscendC::Duplicate(root, variance + 1.0e-5f, 8);  // @epsilon
        AscendC::Sqrt(root, root, 8);
        float scale = 1.0f / root.GetValue(0);
        for (uint32_t at = 0; at < t.length; at += kTile) {
            uint32_t n = t.length - at < kTile ? t.length - at : kTile;
            AscendC::LocalTensor<float> y = departures.AllocTensor<float>();
            AscendC::LocalTensor<float> x = Load(in, row * t.length + at, n);
            AscendC::Adds(y, x, -mean, n);
            AscendC::Muls(y, y, scale, n);
            arrivals.FreeTensor(x);
            AscendC::LocalTensor<float> weight = Load(weights, at, n);
            AscendC::Mul(y, y, weight, n);
            arrivals.FreeTensor(weight);
            AscendC::LocalTensor<float> bias = Load(biases, at, n);
            AscendC::Add(y, y, bias, n);
            arrivals.FreeTensor(bias);
            departures.EnQue(y);
            y = departures.DeQue<float>();
            AscendC::DataCopyExtParams size{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
            AscendC::DataCopyPad(out[row * t.length + at], y, size);
            departures.FreeTensor(y);
        }
    }

    static constexpr uint32_t kTile = 4096;
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> arrivals;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> departures;
    AscendC::TBuf<> scratch;
    AscendC::GlobalTensor<float> in, weights, biases, out;
    NormSizes t;
};

extern "C" __global__ __aicore__ void layer_norm(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y, NormSizes t)
{
    LayerNorm op(x, weight, bias, y, t);
    op.Rows();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream)
{
    const KernelTensor &x = a->inputs[0];
    NormSizes t;
    t.rows = static_cast<uint32_t>(x.shape[0]);
    t.length = static_cast<uint32_t>(x.shape[1] * x.shape[2] * x.shape[3]);
    t.inverse = 1.0f / static_cast<float>(t.length);
    t.share = (t.rows + 47) / 48;
    layer_norm<<<(t.rows + t.share - 1) / t.share, nullptr, stream>>>(
        (GM_ADDR)x.ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->inputs[2].ptr, (GM_ADDR)a->outputs[0].ptr, t);
    return 0;
}
// @end

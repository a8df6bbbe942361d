// task: level2/gemm_sigmoid_sum_log_sum_exp
// cause: honest
// expect: feasible
// about: a linear layer with the library's Matmul, the sum of its sigmoids row by row, then the logarithm of the sum of exponentials of these
#include "kernel_operator.h"
#include "kernel_gym.h"
#include "lib/matmul_intf.h"

struct Layer {
    TCubeTiling cube;
    uint32_t rows, columns, depth, across, blocks, share, rowShare, pitch, seen;
    float factor;
};

__aicore__ inline uint32_t Part(uint32_t left)
{
    return left < 128 ? left : 128;
}

__aicore__ inline void Multiply(GM_ADDR x, GM_ADDR weight, GM_ADDR product, const Layer &t)
{
    AscendC::TPipe pipe;
    using Matrix = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
    AscendC::Matmul<Matrix, Matrix, Matrix> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t.cube);
    AscendC::GlobalTensor<float> left, right, result;
    left.SetGlobalBuffer((__gm__ float *)x);
    right.SetGlobalBuffer((__gm__ float *)weight);
    result.SetGlobalBuffer((__gm__ float *)product);
    uint32_t first = AscendC::GetBlockIdx() * t.share;
    for (uint32_t block = first; block < first + t.share && block < t.blocks; ++block) {
        uint32_t row = block / t.across * 128, column = block % t.across * 128;
        mm.SetTensorA(left[row * t.depth], false);
        mm.SetTensorB(right[column * t.depth], true);
        mm.SetTail(Part(t.rows - row), Part(t.seen - column), t.depth);
        mm.IterateAll(result[row * t.columns + column]);
        mm.End();
    }
}

__aicore__ inline void Activate(GM_ADDR product, GM_ADDR bias, GM_ADDR y, const Layer &t)
{
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    AscendC::TBuf<AscendC::TPosition::VECCALC> biasBuf, workBuf;
    pipe.InitBuffer(in, 2, t.pitch * sizeof(float));
    pipe.InitBuffer(out, 2, 32);
    pipe.InitBuffer(biasBuf, t.pitch * sizeof(float));
    pipe.InitBuffer(workBuf, t.pitch * sizeof(float));
    AscendC::GlobalTensor<float> xGm, biasGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float *)product);
    biasGm.SetGlobalBuffer((__gm__ float *)bias);
    yGm.SetGlobalBuffer((__gm__ float *)y);
    AscendC::DataCopyExtParams whole{1, static_cast<uint32_t>(t.seen * sizeof(float)), 0, 0, 0};
    AscendC::DataCopyExtParams single{1, static_cast<uint32_t>(sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<float> bare{false, 0, 0, 0};
    auto b = biasBuf.Get<float>();
    AscendC::DataCopyPad(b, biasGm, whole, bare);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
    auto work = workBuf.Get<float>();
    uint32_t first = AscendC::GetBlockIdx() * t.rowShare;
    for (uint32_t row = first; row < first + t.rowShare && row < t.rows; ++row) {
        auto x = in.AllocTensor<float>();
        AscendC::DataCopyPad(x, xGm[row * t.columns], whole, bare);
        in.EnQue(x);
        x = in.DeQue<float>();
        auto z = out.AllocTensor<float>();
        AscendC::Add(x, x, b, t.seen);
        AscendC::Muls(x, x, -1.0f, t.seen);
        AscendC::Exp(x, x, t.seen);
        AscendC::Adds(x, x, 1.0f, t.seen);
        AscendC::Duplicate(work, 1.0f, t.seen);
        AscendC::Div(x, work, x, t.seen);
        AscendC::ReduceSum(z, x, work, t.seen);
        AscendC::Muls(z, z, t.factor, 1);
        in.FreeTensor(x);
        out.EnQue(z);
        z = out.DeQue<float>();
        AscendC::DataCopyPad(yGm[row], z, single);
        out.FreeTensor(z);
    }
}

__aicore__ inline void Combine(GM_ADDR sums, GM_ADDR y, const Layer &t)
{
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf, statBuf;
    const uint32_t room = (t.rows + 63) / 64 * 64;
    pipe.InitBuffer(in, 1, room * sizeof(float));
    pipe.InitBuffer(out, 1, 32);
    pipe.InitBuffer(workBuf, room * sizeof(float));
    pipe.InitBuffer(statBuf, 64);
    AscendC::GlobalTensor<float> sGm, yGm;
    sGm.SetGlobalBuffer((__gm__ float *)sums);
    yGm.SetGlobalBuffer((__gm__ float *)y);
    auto s = in.AllocTensor<float>();
    AscendC::DataCopyPad(s, sGm, {1, static_cast<uint32_t>(t.rows * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
    in.EnQue(s);
    s = in.DeQue<float>();
    auto work = workBuf.Get<float>(), stat = statBuf.Get<float>();
    AscendC::ReduceMax(stat, s, work, t.rows);
    AscendC::SetFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
    float largest = stat.GetValue(0);
    auto z = out.AllocTensor<float>();
    AscendC::Adds(s, s, -largest, t.rows);
    AscendC::Exp(s, s, t.rows);
    AscendC::ReduceSum(z, s, work, t.rows);
    AscendC::Ln(z, z, 1);
    AscendC::Adds(z, z, largest, 1);
    in.FreeTensor(s);
    out.EnQue(z);
    z = out.DeQue<float>();
    AscendC::DataCopyPad(yGm, z, {1, static_cast<uint32_t>(sizeof(float)), 0, 0, 0});
    out.FreeTensor(z);
}

// @outside
extern "C" __global__ __aicore__ void layer(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR product, GM_ADDR y, Layer t)
{
    GM_ADDR sums = product + t.rows * t.columns * sizeof(float);
    Multiply(x, weight, product, t);  // @multiply
    AscendC::SyncAll();
    Activate(product, bias, sums, t);
    AscendC::SyncAll();
    if (AscendC::GetBlockIdx() == 0) Combine(sums, y, t);
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    Layer t;
    t.rows = static_cast<uint32_t>(args->inputs[0].shape[0]);
    t.depth = static_cast<uint32_t>(args->inputs[0].shape[1]);
    t.columns = static_cast<uint32_t>(args->inputs[1].shape[0]);
    t.seen = t.columns;
    t.factor = 1.0f;  // @host
    t.across = (t.seen + 127) / 128;
    t.blocks = (t.rows + 127) / 128 * t.across;
    t.pitch = (t.columns + 63) / 64 * 64;
    const uint32_t lanes = 48;
    t.share = (t.blocks + lanes - 1) / lanes;
    t.rowShare = (t.rows + lanes - 1) / lanes;
    t.cube.usedCoreNum = lanes;
    t.cube.M = t.rows;
    t.cube.N = t.columns;
    t.cube.Ka = t.cube.Kb = t.cube.singleCoreK = t.depth;
    t.cube.baseM = t.cube.baseN = t.cube.singleCoreM = t.cube.singleCoreN = 128;
    t.cube.baseK = 64;
    t.cube.depthA1 = t.cube.depthB1 = 4;
    layer<<<lanes / 2, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->inputs[1].ptr,
                                          (GM_ADDR)args->inputs[2].ptr, (GM_ADDR)args->workspace,
                                          (GM_ADDR)args->outputs[0].ptr, t);
    return 0;
}
// @end

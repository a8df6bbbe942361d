// Names of the vector and scalar units that no other kernel of the suite uses.
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

__aicore__ bool near(float a, float b) { return abs(a - b) < 1e-4f; }

__aicore__ void scalars() {
    ASSERT(sqrt(16.0f) == 4.0f && abs(-3) == 3 && max(2, 3) == 3 && min(2.0f, 3.0f) == 2.0f);
    ASSERT(ToFloat(ToBfloat16(1.5f)) == 1.5f);
    ASSERT((ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(-1.5f) == -2));
    ASSERT((ScalarCast<float, int32_t, RoundMode::CAST_CEIL>(-1.5f) == -1));
    ASSERT((ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(2.5f) == 3));
    ASSERT((ScalarCast<float, int32_t, RoundMode::CAST_TRUNC>(-1.5f) == -1));
    ASSERT(((float)ScalarCast<float, half, RoundMode::CAST_ODD>(1.5f) == 1.5f));
    ASSERT(GetSystemCycle() == 0 && GetProgramCounter() == 0 && GetUBSizeInBytes() == TOTAL_UB_SIZE);
    ASSERT(GetSubBlockNum() == 1 && GetTaskRation() == 1 && ASCEND_IS_AIV && !(ASCEND_IS_AIC));
    if (GetBlockIdx() > 99) Trap();
    PRINTF("%d\n", 1);
}

__aicore__ void masks(LocalTensor<float> a, LocalTensor<float> b) {
    Duplicate(b, 0.0f, 256);
    SetMaskNorm();
    SetVectorMask<float, MaskMode::NORMAL>(0, 0xff);
    Adds<float, false>(b, a, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    ASSERT(b.GetValue(7) == a.GetValue(7) + 1 && b.GetValue(8) == 0);
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(100);
    Adds<float, false>(b, a, 2.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    ASSERT(b.GetValue(99) == a.GetValue(99) + 2 && b.GetValue(100) == 0);
    SetMaskNorm();
    ResetMask();
    Adds<float, false>(b, a, 3.0f, MASK_PLACEHOLDER_LIST, 1, {1, 1, 8, 8});
    ASSERT(b.GetValue(63) == a.GetValue(63) + 3);
}

__aicore__ void reductions(LocalTensor<float> a, LocalTensor<float> b) {
    float sum = 0, most = a.GetValue(0);
    for (uint32_t i = 0; i < 64; ++i) sum += a.GetValue(i), most = max(most, a.GetValue(i));
    ReduceRepeat<ReduceType::SUM>(b, a, 64, 1, 1, 1, 8);
    ASSERT(near(b.GetValue(0), sum));
    RepeatReduceSum(b, a, 1, 64, 0, 1, 1, 8);
    ASSERT(near(b.GetValue(0), sum));
    ReduceRepeat<ReduceType::MAX>(b, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_VALUE_INDEX);
    ASSERT(b.GetValue(0) == most && a.GetValue(b.ReinterpretCast<uint32_t>().GetValue(1)) == most);
    ReduceRepeat<ReduceType::MAX>(b, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);
    ASSERT(b.GetValue(1) == most);
    ReduceRepeat<ReduceType::MAX>(b, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    ASSERT(b.GetValue(0) == most);
    ReduceRepeat<ReduceType::MIN>(b, a, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_INDEX);
    ASSERT(a.GetValue(b.ReinterpretCast<uint32_t>().GetValue(0)) <= most);
    ReduceDataBlock<ReduceType::SUM>(b, a, 1, 64, 1, 1, 8);
    ASSERT(near(b.GetValue(0), a.GetValue(0) + a.GetValue(1) + a.GetValue(2) + a.GetValue(3) + a.GetValue(4) + a.GetValue(5) +
                                   a.GetValue(6) + a.GetValue(7)));
    ReducePairElem(b, a, 1, 64, 1, 1, 8);
    ASSERT(near(b.GetValue(3), a.GetValue(6) + a.GetValue(7)));
}

__aicore__ void others(LocalTensor<float> a, LocalTensor<float> b, LocalTensor<uint8_t> bits) {
    Arange(b, 1.0f, 2.0f, 64);
    ASSERT(b.GetValue(3) == 7.0f);
    Compares(bits, b, 7.0f, CMPMODE::LT, 64);
    ASSERT(bits.GetValue(0) == 7);
    FasterGeluV2(b, a, 64);
    uint32_t to[2] = {4, 16}, from[2] = {4, 1};
    Broadcast<float, 2, 1>(b, a, to, from);
    ASSERT(b.GetValue(17) == a.GetValue(1));
    LocalTensor<int16_t> words = b.ReinterpretCast<int16_t>();
    Duplicate(words, (int16_t)5, 64);
    Xor(words[64], words, words, 64);
    ASSERT(words.GetValue(64) == 0);
    LocalTensor<bfloat16_t> brain = b.ReinterpretCast<bfloat16_t>();
    Duplicate(brain, ToBfloat16(2.0f), 64);
    ASSERT(ToFloat(brain.GetValue(5)) == 2.0f);
    DumpTensor(a, 5, 8);
    ASSERT(GetSortLen<float>(32) == 64);
}

extern "C" __global__ __aicore__ void vector_names(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    TBuf<> ta, tb, tc;
    pipe.InitBuffer(ta, 4096);
    pipe.InitBuffer(tb, 4096);
    pipe.InitBuffer(tc, 256);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    DataCopy(a, in, 1024);
    PipeBarrier<PIPE_ALL>();
    scalars();
    masks(a, b);
    reductions(a, b);
    others(a, b, tc.Get<uint8_t>());
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, a, 1024);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    vector_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    return 0;
}

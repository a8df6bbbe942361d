// Names of memory, queues, tensors, copies and constants that no other kernel of the suite uses.
#include <initializer_list>

#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

static_assert(ONE_BLK_SIZE == 32 && ONE_REPEAT_BYTE_SIZE == 256 && DEFAULT_BLK_NUM == 8 && MAX_REPEAT_TIMES == 255);
static_assert(DEFAULT_BLK_STRIDE == 1 && DEFAULT_REPEAT_STRIDE == 8 && DEFAULT_REP_STRIDE == 8);
static_assert(DEFAULT_DATA_COPY_NUM == 1 && DEFAULT_DATA_COPY_STRIDE == 0 && K_MAX_SHAPE_DIM == 8 && defaultBufIDSize == 16);
static_assert(TOTAL_UB_SIZE == 196608 && TOTAL_VEC_LOCAL_SIZE == 188416 && TMP_UB_OFFSET == 188416);
static_assert(TOTAL_L1_SIZE == 524288 && TOTAL_L0A_SIZE == 65536 && TOTAL_L0B_SIZE == 65536 && TOTAL_L0C_SIZE == 131072);
static_assert(IsSameType<float32_t, float>::value && IsSameType<float16_t, half>::value);
static_assert(IsSameType<LocalTensor<half>::PrimType, half>::value);
static_assert(AlignUp(33, 32) == 64 && DivCeil(33, 32) == 2 && CeilDivision(64, 32) == 2);

__aicore__ void tensors(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x, 1024);
    out.SetGlobalBuffer((__gm__ float *)z, 1024);
    const uint32_t sizes[2] = {32, 32};
    in.SetShapeInfo(ShapeInfo(2, sizes, DataFormat::NCHW));
    ASSERT(in.GetShapeInfo().shape[1] == 32 && in.GetShapeInfo().dataFormat == DataFormat::NCHW);
    in.SetShapeInfo(ShapeInfo(2, sizes, 2, sizes, DataFormat::NHWC));
    for (DataFormat format : {DataFormat::NC1HWC0, DataFormat::NCDHW, DataFormat::NDC1HWC0, DataFormat::FRACTAL_Z_3D, DataFormat::NZ})
        ASSERT(format != DataFormat::ND);
    in.SetL2CacheHint<CacheRwMode::READ>(CacheMode::CACHE_MODE_NORMAL);
    out.SetL2CacheHint<CacheRwMode::WRITE>(CacheMode::CACHE_MODE_LAST);
    out.SetL2CacheHint<CacheRwMode::RW>(CacheMode::CACHE_MODE_PERSISTENT);
    ASSERT(in.ReinterpretCast<half>().GetSize() == 2048 && in[1000].GetSize() == 24);
    TQue<QuePosition::VECIN, 2> queue;
    TBuf<TPosition::LCM> buffer;
    pipe.InitBuffer(queue, 2, 4096);
    pipe.InitBuffer(buffer, 4096);
    ASSERT(buffer.GetBufLen() == 4096 && queue.HasIdleBuffer() && queue.VacantInQue() && !queue.HasTensorInQue());
    LocalTensor<float> part = buffer.GetWithOffset<float>(512, 2048), rest;
    ASSERT(part.GetSize() == 512 && part.GetLength() == 2048);
    part.SetUserTag(7);
    ASSERT(part.GetUserTag() == 7 && part.GetPosition() == (int32_t)TPosition::VECCALC);
    part.SetSize(256);
    part.SetBufferLen(2048);
    rest.SetAddrWithOffset(part, 16);
    ASSERT(rest.GetPhyAddr() == part.GetPhyAddr(16));
    LocalTensor<float> left;
    ASSERT((PopStackBuffer<float, TPosition::LCM>(left)) && left.GetLength() == TOTAL_UB_SIZE - 3 * 4096);
    auto a = queue.AllocTensor<float>();
    DataCopyPad(a, in, DataCopyParams(1, 4092, 0, 0), DataCopyPadParams(true, 0, 1, 0));
    queue.EnQue<TPosition::GM, TPosition::VECIN, float>(a);
    ASSERT(queue.GetTensorCountInQue() == 1 && queue.HasTensorInQue());
    a = queue.DeQue<TPosition::GM, TPosition::VECIN, float>();
    Muls(a, a, 2.0f, 1024);
    PipeBarrier<PIPE_V>();
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, a, 1024);
    queue.FreeTensor(a);
    queue.FreeAllEvent();
    pipe.Reset();
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> through;
    pipe.InitBuffer(through, 1, 64);
    SetPadValue<float>(3.0f);
    auto b = through.AllocTensor<float>();
    DataCopyPad(b, in, DataCopyExtParams(1, 20, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
    through.EnQue(b);
    b = through.DeQue<float>();
    DataCopyPad(out, b, DataCopyExtParams(1, 20, 0, 0, 0));
    through.FreeTensor(b);
    pipe.Destroy();
}

// Two pools on the same bytes, one after the other, and one inside the first.
__aicore__ void pools(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    TBufPool<TPosition::VECCALC> first, second, inner;
    pipe.InitBufPool(first, 32768);
    pipe.InitBufPool(second, 32768, first);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    {
        TQue<TPosition::VECIN, 1> from;
        TQue<TPosition::VECOUT, 1> to;
        TBuf<> spare;
        first.InitBuffer(from, 2, 4096);
        first.InitBuffer(to, 1, 4096);
        first.InitBuffer(spare, 1024);
        first.InitBufPool(inner, 4096);
        TBuf<> nested;
        inner.InitBuffer(nested, 2048);
        ASSERT(nested.Get<float>().GetPhyAddr() == spare.Get<float>().GetPhyAddr() + 1024);
        auto a = from.AllocTensor<float>();
        DataCopy(a, in, 1024);
        from.EnQue(a);
        a = from.DeQue<float>();
        auto b = to.AllocTensor<float>();
        Adds(b, a, 1.0f, 1024);
        from.FreeTensor(a);
        to.EnQue(b);
        b = to.DeQue<float>();
        DataCopy(out, b, 1024);
        to.FreeTensor(b);
    }
    first.Reset();
    TQue<TPosition::VECIN, 1> again;
    second.InitBuffer(again, 1, 16384);
    auto c = again.AllocTensor<float>();
    DataCopy(c, in, 1024);
    again.EnQue(c);
    c = again.DeQue<float>();
    again.FreeTensor(c);
    second.Reset();
}

__aicore__ void by_hand(GM_ADDR x, GM_ADDR z) {
    LocalMemAllocator<Hardware::UB> memory;
    LocalTensor<float> a = memory.Alloc<TPosition::VECIN, float, 1024>();
    LocalTensor<float> b = memory.Alloc<TPosition::VECOUT, float>(1024);
    ASSERT(memory.GetCurAddr() == 8192 && Hardware::L1 != Hardware::L0A && Hardware::L0B != Hardware::L0C);
    ASSERT(Hardware::BIAS != Hardware::FIXBUF && Hardware::GM != Hardware::UB);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    DataCopy(a, in, 1024);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID2);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID2);
    Adds(b, a, 1.0f, 1024);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID3);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID3);
    DataCopy(out, b, 1024);
}

extern "C" __global__ __aicore__ void memory_names(GM_ADDR x, GM_ADDR z) {
    InitSocState();
    by_hand(x, z);
    PipeBarrier<PIPE_ALL>();
    tensors(x, z);
    PipeBarrier<PIPE_ALL>();
    pools(x, z);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    memory_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    return 0;
}

// Names of the cube that no other kernel of the suite uses: the sum of rows of ones, four ways out of L0C.
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

static_assert(CFG_ROW_MAJOR.format == CO2Layout::ROW_MAJOR && CFG_NZ.format == CO2Layout::NZ);
constexpr FixpipeConfig own{CO2Layout::ROW_MAJOR};
static_assert(F322F16 != F322BF16 && DEQF16 != VDEQF16 && QF322B8_PRE != VQF322B8_PRE && REQ8 != VREQ8);
static_assert(TPosition::TSCM != TPosition::A1 && TPosition::SPM == TPosition::SHM && TPosition::CO2 != TPosition::CO1);

extern "C" __global__ __aicore__ void cube_names(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    TBuf<TPosition::TSCM> t1;
    TBuf<TPosition::A2> ta;
    TBuf<TPosition::B2> tb;
    TBuf<TPosition::CO1> tc;
    pipe.InitBuffer(t1, 2048);
    pipe.InitBuffer(ta, 2048);
    pipe.InitBuffer(tb, 2048);
    pipe.InitBuffer(tc, 4096);
    LocalTensor<float> a1 = t1.Get<float>(), a = ta.Get<float>(), b = tb.Get<float>(), c = tc.Get<float>();
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    // A: 32 x 16 ones in L1, by fractals to L0A; B: 16 x 32 ones at once.
    InitConstValue(a1, InitConstValueParams<float>(1, 64, 0, 1.0f));
    InitConstValue(b, InitConstValueParams<float>(2, 2, 0, 1.0f));
    SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID5);
    WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID5);
    LoadData(a, a1, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
    PipeBarrier<PIPE_MTE1>();
    SetFlag<HardEvent::MTE1_M>(EVENT_ID4);
    WaitFlag<HardEvent::MTE1_M>(EVENT_ID4);
    MmadParams by;
    by.m = 32, by.n = 32, by.k = 16;
    Mmad(c, a, b, by);
    PipeBarrier<PIPE_M>();
    SetFlag<HardEvent::M_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);
    SetFlag<HardEvent::M_FIX>(EVENT_ID1);
    WaitFlag<HardEvent::M_FIX>(EVENT_ID1);
    FixpipeParamsV220 to;
    to.nSize = 32, to.mSize = 32, to.srcStride = 32, to.dstStride = 32, to.quantPre = NoQuant;
    Fixpipe<float, float, own>(out, c, to);
    PipeBarrier<PIPE_FIX>();
    // The framework's ids work too; using them by hand is only warned of.
    SetFlag<HardEvent::FIX_M>(EVENT_ID6);
    WaitFlag<HardEvent::FIX_M>(EVENT_ID6);
    SetFlag<HardEvent::FIX_M>(EVENT_ID7);
    WaitFlag<HardEvent::FIX_M>(EVENT_ID7);
}

// A vector core: waits between copies that no other kernel has, and a pointer to UB that is only passed on.
extern "C" __global__ __aicore__ void copy_names(GM_ADDR x, GM_ADDR z) {
    TPipe pipe;
    TBuf<> tt;
    pipe.InitBuffer(tt, 4096);
    LocalTensor<float> t = tt.Get<float>();
    __ubuf__ float *nowhere = nullptr;
    ASSERT(nowhere == nullptr);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    DataCopy(t, out, 1024);
    SetFlag<HardEvent::MTE2_S>(0);
    WaitFlag<HardEvent::MTE2_S>(0);
    ASSERT(t.GetValue(1023) == 16.0f);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(out, t, 1024);
    SetFlag<HardEvent::MTE3_V>(0);
    WaitFlag<HardEvent::MTE3_V>(0);
    Adds(t, t, 1.0f, 1024);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    cube_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    copy_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    return 0;
}

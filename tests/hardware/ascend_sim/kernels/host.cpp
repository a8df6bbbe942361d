// What the host function can ask: tilings and temporary space. Each size is handed to the function that it is for.
#include <initializer_list>

#include "kernel_operator.h"
#include "kernel_gym.h"
#include "tiling/tiling_api.h"
using namespace AscendC;

struct Sizes {
    uint32_t tmp[48];
    SoftMaxTiling soft, flash, flash2;
    LogSoftMaxTiling log;
    LayerNormTiling layer;
    RmsNormTiling rms;
    GroupNormTiling group;
    PadTiling pad;
    UnPadTiling unpad;
    TopkTiling top;
};

extern "C" __global__ __aicore__ void host_names(GM_ADDR x, GM_ADDR z, Sizes s) {
    TPipe pipe;
    TBuf<> ta, tb, tc, td, te, tt;
    pipe.InitBuffer(ta, 4096);
    pipe.InitBuffer(tb, 8192);
    pipe.InitBuffer(tc, 4096);
    pipe.InitBuffer(td, 4096);
    pipe.InitBuffer(te, 4096);
    pipe.InitBuffer(tt, 16384);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>(), c = tc.Get<float>(), d = td.Get<float>(), e = te.Get<float>();
    LocalTensor<int32_t> i = td.Get<int32_t>();
    LocalTensor<bool> done;
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    DataCopy(a, in, 1024);
    Duplicate(c, 1.0f, 1024);
    PipeBarrier<PIPE_ALL>();
    uint32_t next = 0;
#define TMP tt.Get<uint8_t>(s.tmp[next++])
#define ONE(name) name(b, a, TMP, 1024);
    ONE(Tanh) ONE(Sigmoid) ONE(Erf) ONE(Erfc) ONE(Sin) ONE(Cos) ONE(Tan) ONE(Asin) ONE(Acos) ONE(Atan) ONE(Sinh) ONE(Cosh)
    ONE(Asinh) ONE(Acosh) ONE(Atanh) ONE(Floor) ONE(Ceil) ONE(Round) ONE(Trunc) ONE(Frac) ONE(Sign) ONE(Lgamma) ONE(Digamma) ONE(Gelu)
    Exp<float, 5>(b, a, TMP, 1024);
    Fmod(b, a, c, TMP, 1024);
    Power(b, a, c, TMP, 1024);
    ClampMax(b, a, TMP, 1.0f, 1024);
    ClampMin(b, a, TMP, 1.0f, 1024);
    Xor(b.ReinterpretCast<int16_t>(), a.ReinterpretCast<int16_t>(), c.ReinterpretCast<int16_t>(), TMP, 1024);
    SoftMax(b, d, e, a, TMP, s.soft);
    SoftmaxFlash(b, d, e, a, c, d, e, TMP, s.flash, false);
    SoftmaxFlashV2<float>(b, d, e, a, c, d, e, TMP, s.flash2);
    LogSoftMax(b, d, e, a, TMP, s.log);
    Sum(b, a, TMP, SumParams{16, 64, 64});
    Mean(b, a, TMP, MeanParams{16, 64, 64});
    CumSum(b, d, a, TMP, CumSumInfo{16, 64});
    LayerNorm(b, d, e, a, c, c, TMP, 1e-5f, s.layer);
    RmsNorm(b, a, c, TMP, 1e-5f, s.rms);
    GroupNorm(b, d, e, a, c, c, TMP, 1e-5f, s.group);
    PadParams padding{0, 8, 0};
    Pad(b, a, padding, s.pad);
    UnPadParams taken{0, 8};
    UnPad(b, a, taken, s.unpad);
    TopK<float, false, false, false, TopKMode::TOPK_NORMAL>(b, i, a, i, done, TMP, 5, s.top, TopKInfo{16, 64, 60});
    AscendQuant(b.ReinterpretCast<int8_t>(), a, TMP, 2.0f, 0.0f, 1024);
    AscendDequant(b, i, 0.5f, TMP, DequantParams{1, 64, 64});
    LocalTensor<float> pairs = tt.Get<float>(s.tmp[next++] / 4);
    Duplicate(i, 0, 1024);
    Sort<float, true>(b, a, td.Get<uint32_t>(), pairs, 32);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, a, 1024);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    Sizes s{};
    uint32_t next = 0, most = 0;
    const ge::Shape flat{1024}, rows{16, 64};
    if (rows.GetDimNum() != 2 || rows.GetDim(1) != 64 || rows.GetShapeSize() != 1024) return 1;
#define SIZE(name) Get##name##MaxMinTmpSize(flat, 4, false, most, s.tmp[next++]);
    SIZE(Tanh) SIZE(Sigmoid) SIZE(Erf) SIZE(Erfc) SIZE(Sin) SIZE(Cos) SIZE(Tan) SIZE(Asin) SIZE(Acos) SIZE(Atan) SIZE(Sinh) SIZE(Cosh)
    SIZE(Asinh) SIZE(Acosh) SIZE(Atanh) SIZE(Floor) SIZE(Ceil) SIZE(Round) SIZE(Trunc) SIZE(Frac) SIZE(Sign) SIZE(Lgamma) SIZE(Digamma)
    SIZE(Gelu) SIZE(Exp) SIZE(Fmod) SIZE(Power) SIZE(ClampMax) SIZE(ClampMin)
    GetXorMaxMinTmpSize(flat, 2, false, most, s.tmp[next++]);
    s.tmp[next++] = GetSoftMaxMinTmpSize(rows, 4, false);
    for (int i = 0; i < 3; ++i) s.tmp[next++] = GetSoftMaxMaxTmpSize(rows, 4, false);
    SoftMaxTilingFunc(rows, 4, s.tmp[next - 1], s.soft);
    SoftMaxFlashTilingFunc(rows, 4, s.tmp[next - 1], s.flash, false);
    SoftMaxFlashV2TilingFunc(rows, 4, 4, s.tmp[next - 1], s.flash2, false);
    LogSoftMaxTilingFunc(rows, 4, s.tmp[next - 1], s.log);
    GetSumMaxMinTmpSize(64, 4, false, most, s.tmp[next++]);
    GetMeanMaxMinTmpSize(64, 4, 4, false, most, s.tmp[next++]);
    GetCumSumMaxMinTmpSize(rows, 4, true, false, most, s.tmp[next++]);
    const ge::Shape layers{2, 8, 64, 64};
    GetLayerNormMaxMinTmpSize(layers, 4, false, most, s.tmp[next++]);
    GetLayerNormNDTilingInfo(layers, most, 4, false, s.layer);
    const ge::Shape batches{2, 8, 64};
    if (!GetRmsNormMaxMinTmpSize(batches, 4, most, s.tmp[next++])) return 2;
    if (!GetRmsNormTilingInfo(batches, batches, most, 4, s.rms)) return 3;
    const ge::Shape image{2, 8, 8, 8};
    GetGroupNormMaxMinTmpSize(image, 4, false, 4, most, s.tmp[next++]);
    GetGroupNormNDTilingInfo(image, most, 4, false, 4, s.group);
    platform_ascendc::PlatformAscendC *platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    uint32_t none = 1;
    GetPadMaxMinTmpSize(rows, 4, most, none);
    PadTilingFunc(rows, rows, none, 4, s.pad);
    GetUnPadMaxMinTmpSize(*platform, rows, 4, most, none);
    UnPadTilingFunc(rows, none, 4, s.unpad);
    GetBroadCastMaxMinTmpSize(*platform, ge::Shape{16, 1}, rows, 4, false, most, none);
    if (none || GetConcatTmpSize(*platform, 1024, 4)) return 4;
    if (!GetTopKMaxMinTmpSize(*platform, 64, 16, false, false, 0, true, 4, most, s.tmp[next++])) return 5;
    if (!TopKTilingFunc(*platform, 64, 16, 5, 4, false, (int32_t)TopKMode::TOPK_NSMALL, true, s.top)) return 6;
    GetAscendQuantMaxMinTmpSize(flat, 4, most, s.tmp[next++]);
    GetAscendDequantMaxMinTmpSize(flat, 4, most, s.tmp[next++]);
    s.tmp[next++] = GetSortTmpSize(*platform, 1024, 4);
    uint64_t bytes = 0;
    using platform_ascendc::SocVersion;
    const SocVersion soc = platform->GetSocVersion();
    for (auto other : {SocVersion::ASCEND910, SocVersion::ASCEND310P, SocVersion::ASCEND310B, SocVersion::RESERVED_VERSION}) {
        if (soc == other) return 10;
    }
    if (soc != SocVersion::ASCEND910B || platform->GetCoreNumVector() != 0 || platform->CalcTschBlockDim(8, 0, 48) != 8) return 11;
    platform->GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
    if (bytes != TOTAL_UB_SIZE || platform->GetLibApiWorkSpaceSize() == 0 || platform->GetCoreNum() != platform->GetCoreNumAic()) return 7;
    for (auto type : {platform_ascendc::CoreMemType::L0_A, platform_ascendc::CoreMemType::L0_B, platform_ascendc::CoreMemType::L0_C,
                      platform_ascendc::CoreMemType::L1, platform_ascendc::CoreMemType::L2, platform_ascendc::CoreMemType::HBM,
                      platform_ascendc::CoreMemType::RESERVED}) {
        platform->GetCoreMemSize(type, bytes);
        if (bytes == 0) return 8;
    }
    if (platform->GetCoreNumAiv() != 48) return 9;
    host_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, s);
    return 0;
}

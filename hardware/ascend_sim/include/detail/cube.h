// The cube's basic API: loads of fractals into L0, products, results out of L0C.
#pragma once
#include "copy.h"
#include "message.h"

namespace AscendC {

// In fractals of 512 bytes.
struct LoadData2DParams {
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint8_t sid = 0;
    uint16_t dstGap = 0;
    bool ifTranspose = false;
    uint8_t addrMode = 0;
    constexpr LoadData2DParams() = default;
    constexpr LoadData2DParams(uint16_t start, uint8_t repeat, uint16_t src_stride, uint8_t id, uint16_t dst_gap,
                               bool transpose, uint8_t mode)
        : startIndex(start), repeatTimes(repeat), srcStride(src_stride), sid(id), dstGap(dst_gap),
          ifTranspose(transpose), addrMode(mode) {}
};

struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
};

// With a scalar, or (V...) with a number per column.
enum QuantMode_t : uint32_t { NoQuant, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8 };
enum class CO2Layout : uint8_t { NZ, ROW_MAJOR };
struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;
};
inline constexpr FixpipeConfig CFG_ROW_MAJOR{CO2Layout::ROW_MAJOR}, CFG_NZ{CO2Layout::NZ};

struct FixpipeParamsV220 {
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

// DataCopy out of L0C: a Fixpipe whose parameters are in registers.
struct DataCopyCO12DstParams {
    uint8_t sid = 0;
    uint16_t nSize = 0, mSize = 0;
    uint32_t dstStride = 0;
    uint16_t srcStride = 0;
    uint8_t unitFlag = 0, clipReluPre = 0, eltWiseOp = 0;
    QuantMode_t quantPre = NoQuant;
    uint8_t reluPre = 0;
    bool channelSplit = false, nz2ndEn = false;
};

struct LoadData2dTransposeParams {
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
    uint8_t addrMode = 0;
    constexpr LoadData2dTransposeParams() = default;
    constexpr LoadData2dTransposeParams(uint16_t start, uint8_t repeat, uint16_t src_stride, uint16_t dst_gap,
                                        uint16_t fractal_gap, uint8_t mode = 0)
        : startIndex(start), repeatTimes(repeat), srcStride(src_stride), dstGap(dst_gap), dstFracGap(fractal_gap),
          addrMode(mode) {}
};

template <class T>
struct LoadData3DParamsV2 {
    uint8_t padList[4] = {};  // left, right, top, bottom
    uint16_t l1H = 0, l1W = 0, channelSize = 0, kExtension = 0, mExtension = 0, kStartPt = 0, mStartPt = 0;
    uint8_t strideW = 1, strideH = 1, filterW = 1, filterH = 1, dilationFilterW = 1, dilationFilterH = 1;
    bool enTranspose = false, enSmallK = false;
    T padValue = T(0);
    bool filterSizeW = false, filterSizeH = false, fMatrixCtrl = false;
};

template <class T>
struct InitConstValueParams {
    uint16_t repeatTimes = 0, blockNum = 0, dstGap = 0;
    T initValue = T(0);
    constexpr InitConstValueParams() = default;
    constexpr InitConstValueParams(uint16_t repeat, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeat), blockNum(blocks), dstGap(gap), initValue(value) {}
};

template <class T> ASC_INLINE void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                            const LoadData2DParams &p, asc::At at = ASC_HERE) {
    ASC_TAKES("LoadData", T, half, bfloat16_t, float, int8_t, uint8_t, int4b_t);
    asc_load_fractals(dst.asc_where(), src.asc_where(),
                      {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.ifTranspose}, asc::moved<T>, at.line);
}
// Loads from global memory, where fractals have their on-chip layout.
template <class T> ASC_INLINE void LoadData(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                                            const LoadData2DParams &p, asc::At at = ASC_HERE) {
    ASC_TAKES("LoadData", T, half, bfloat16_t, float, int8_t, uint8_t, int4b_t);
    asc_load_global_fractals(dst.asc_where(), src.asc_where(),
                             {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.ifTranspose}, asc::moved<T>,
                             at.line);
}
// The patches of an image that a convolution multiplies, as rows.
template <class T> ASC_INLINE void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                            const LoadData3DParamsV2<T> &p, asc::At at = ASC_HERE) {
    ASC_TAKES("LoadData", T, half, bfloat16_t, float, int8_t);
    if (p.enTranspose || p.enSmallK)
        asc_misuse(asc_text_of("the simulator's LoadData3D knows neither enTranspose nor enSmallK"), at.line);
    const uint32_t wide = p.filterW + 256u * p.filterSizeW, high = p.filterH + 256u * p.filterSizeH;
    asc_load_image(
        dst.asc_where(), src.asc_where(),
        {p.l1H, p.l1W, p.channelSize, p.kExtension, p.mExtension, p.kStartPt, p.mStartPt, p.strideW, p.strideH, wide,
         high, p.dilationFilterW, p.dilationFilterH, p.padList[0], p.padList[1], p.padList[2], p.padList[3]},
        asc_bits(p.padValue), asc::dtype<T>, at.line);
}
template <class T> ASC_INLINE void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                                         const LoadData2dTransposeParams &p, asc::At at = ASC_HERE) {
    ASC_TAKES("LoadDataWithTranspose", T, half, bfloat16_t, float, int8_t, uint8_t);
    asc_load_transposed(dst.asc_where(), src.asc_where(), {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, 1},
                        p.dstFracGap, asc::dtype<T>, at.line);
}

// Fills A1, B1, A2 or B2 with one value.
#define ASC_FILL_AS(name)                                                                                              \
    template <class T> ASC_INLINE void name(const LocalTensor<T> &dst, const InitConstValueParams<T> &p,               \
                                            asc::At at = ASC_HERE) {                                                   \
        ASC_TAKES(#name, T, half, bfloat16_t, int16_t, uint16_t, float, int32_t, uint32_t);                            \
        asc_fill_fractals(dst.asc_where(), p.repeatTimes, p.blockNum, p.dstGap, asc_bits(p.initValue), asc::dtype<T>,  \
                          at.line);                                                                                    \
    }
ASC_FILL_AS(InitConstValue)
ASC_FILL_AS(Fill)
#undef ASC_FILL_AS

#define ASC_MULTIPLIES(D, A, B)                                                                                        \
    static_assert(asc::same<A, B>, "Mmad multiplies two operands of one type");                                        \
    static_assert((asc::one_of<A, int8_t, int4b_t> ? asc::same<D, int32_t> : asc::same<D, float>),                     \
                  "Mmad gives float, or int32_t from int8_t and int4b_t")

// C = A B, or C += A B without cmatrixInitVal.
template <class D, class A, class B>
ASC_INLINE void Mmad(const LocalTensor<D> &dst, const LocalTensor<A> &fm, const LocalTensor<B> &filter,
                     const MmadParams &p, asc::At at = ASC_HERE) {
    ASC_TAKES("Mmad", A, half, bfloat16_t, float, int8_t, int4b_t);
    ASC_MULTIPLIES(D, A, B);
    asc_mmad(dst.asc_where(), fm.asc_where(), filter.asc_where(), {0, 0, ASC_BT}, asc::dtype<D>, asc::dtype<A>,
             {p.m, p.n, p.k, p.cmatrixInitVal, 0}, at.line);
}
template <class D, class A, class B, class Bias>
ASC_INLINE void Mmad(const LocalTensor<D> &dst, const LocalTensor<A> &fm, const LocalTensor<B> &filter,
                     const LocalTensor<Bias> &bias, const MmadParams &p, asc::At at = ASC_HERE) {
    ASC_TAKES("Mmad", A, half, bfloat16_t, float, int8_t, int4b_t);
    ASC_MULTIPLIES(D, A, B);
    static_assert(asc::same<Bias, D>, "Mmad's bias has the type of its result");
    asc_mmad(dst.asc_where(), fm.asc_where(), filter.asc_where(), bias.asc_where(), asc::dtype<D>, asc::dtype<A>,
             {p.m, p.n, p.k, p.cmatrixInitVal, 1}, at.line);
}
#undef ASC_MULTIPLIES

namespace asc_detail {
constexpr uint32_t quant_kind(QuantMode_t mode) {
    return mode == VDEQF16 || mode == VQF322B8_PRE || mode == VREQ8 ? 2 : mode >= DEQF16 ? 1 : 0;
}

template <class D, class S> constexpr bool fixes =
    asc::same<D, S> || (asc::same<S, float> && asc::one_of<D, half, bfloat16_t, int8_t, uint8_t>) ||
    (asc::same<S, int32_t> && asc::one_of<D, half, int8_t, uint8_t>);
#define ASC_FIXES(D, S)                                                                                                \
    static_assert(                                                                                                     \
        asc_detail::fixes<D, S>,                                                                                       \
        "Fixpipe keeps the type, takes float to half, bfloat16_t, int8_t or uint8_t, and int32_t to half, int8_t or uint8_t")

ASC_INLINE asc_fix_shape fix_shape(const FixpipeParamsV220 &p, bool nz) {
    return {p.mSize,          p.nSize,
            p.srcStride,      p.dstStride,
            p.reluEn,         nz,
            p.isChannelSplit, quant_kind(p.quantPre),
            p.ndNum,          p.srcNdStride,
            p.dstNdStride,    0};
}
ASC_INLINE asc_fix_shape fix_shape(const DataCopyCO12DstParams &p) {
    return {p.mSize,
            p.nSize,
            p.srcStride,
            p.dstStride,
            p.reluPre != 0u,
            !p.nz2ndEn,
            p.channelSplit,
            quant_kind(p.quantPre),
            1,
            0,
            0,
            1};
}
constexpr asc_local no_scales{0, 0, ASC_FB};
}  // namespace asc_detail

// Copies L0C to global memory (or, in fractals, to A1). The types determine the conversion, quantPre the scale.
template <class D, class S, const FixpipeConfig &config = CFG_ROW_MAJOR>
ASC_INLINE void Fixpipe(const GlobalTensor<D> &dst, const LocalTensor<S> &src, const FixpipeParamsV220 &p,
                        asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    asc_fixpipe(dst.asc_where(), src.asc_where(), asc_detail::no_scales, asc::dtype<D>, asc::dtype<S>,
                asc_detail::fix_shape(p, config.format == CO2Layout::NZ), p.deqScalar, at.line);
}
template <class D, class S, const FixpipeConfig &config = CFG_ROW_MAJOR>
ASC_INLINE void Fixpipe(const GlobalTensor<D> &dst, const LocalTensor<S> &src,
                        const LocalTensor<uint64_t> &cbufWorkspace, const FixpipeParamsV220 &p, asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    asc_fixpipe(dst.asc_where(), src.asc_where(), cbufWorkspace.asc_where(), asc::dtype<D>, asc::dtype<S>,
                asc_detail::fix_shape(p, config.format == CO2Layout::NZ), p.deqScalar, at.line);
}
template <class D, class S, const FixpipeConfig &config = CFG_NZ>
ASC_INLINE void Fixpipe(const LocalTensor<D> &dst, const LocalTensor<S> &src, const FixpipeParamsV220 &p,
                        asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    static_assert(config.format == CO2Layout::NZ, "Fixpipe to A1 writes fractals: CFG_NZ");
    asc_fixpipe_local(dst.asc_where(), src.asc_where(), asc_detail::no_scales, asc::dtype<D>, asc::dtype<S>,
                      asc_detail::fix_shape(p, true), p.deqScalar, at.line);
}
template <class D, class S, const FixpipeConfig &config = CFG_NZ>
ASC_INLINE void Fixpipe(const LocalTensor<D> &dst, const LocalTensor<S> &src,
                        const LocalTensor<uint64_t> &cbufWorkspace, const FixpipeParamsV220 &p, asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    static_assert(config.format == CO2Layout::NZ, "Fixpipe to A1 writes fractals: CFG_NZ");
    asc_fixpipe_local(dst.asc_where(), src.asc_where(), cbufWorkspace.asc_where(), asc::dtype<D>, asc::dtype<S>,
                      asc_detail::fix_shape(p, true), p.deqScalar, at.line);
}

// The same as a copy, with the parameters in registers.
template <class D, class S> ASC_INLINE void DataCopy(const GlobalTensor<D> &dst, const LocalTensor<S> &src,
                                                     const DataCopyCO12DstParams &p, asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    asc_fixpipe(dst.asc_where(), src.asc_where(), asc_detail::no_scales, asc::dtype<D>, asc::dtype<S>,
                asc_detail::fix_shape(p), 0, at.line);
}
template <class D, class S> ASC_INLINE void DataCopy(const LocalTensor<D> &dst, const LocalTensor<S> &src,
                                                     const DataCopyCO12DstParams &p, asc::At at = ASC_HERE) {
    ASC_FIXES(D, S);
    asc_fixpipe_local(dst.asc_where(), src.asc_where(), asc_detail::no_scales, asc::dtype<D>, asc::dtype<S>,
                      asc_detail::fix_shape(p), 0, at.line);
}
#undef ASC_FIXES
ASC_INLINE void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride, asc::At at = ASC_HERE) {
    asc_fix_registers(1, 0, ndNum, srcNdStride, dstNdStride, asc_detail::no_scales, at.line);
}
ASC_INLINE void SetFixpipePreQuantFlag(uint64_t config, asc::At at = ASC_HERE) {
    asc_fix_registers(0, config, 0, 0, 0, asc_detail::no_scales, at.line);
}
// Sets the scale of each column, in C2PIPE2GM.
template <class T, bool setRelu = false> ASC_INLINE void SetFixPipeConfig(const LocalTensor<T> &preData,
                                                                          bool isUnitFlag = false,
                                                                          asc::At at = ASC_HERE) {
    (void)isUnitFlag;
    static_assert(!setRelu && asc::same<T, uint64_t>,
                  "the simulator's SetFixPipeConfig sets the scales of VDEQF16, VQF322B8_PRE and VREQ8: uint64_t");
    asc_fix_registers(2, 0, 0, 0, 0, preData.asc_where(), at.line);
}

}  // namespace AscendC

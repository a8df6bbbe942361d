// Row-wise functions on tiles of rows and columns in UB.
#pragma once
#include "library.h"
#include "tiling.h"

namespace AscendC {

struct SoftMaxShapeInfo { uint32_t srcM = 0, srcK = 0, oriSrcM = 0, oriSrcK = 0; };
struct SumParams { uint32_t outter = 1, inner = 0, n = 0; };
using MeanParams = SumParams;
struct CumSumInfo { uint32_t outter = 0, inner = 0; };
struct CumSumConfig { bool isLastAxis = true, isReuseSource = false, outputLastRow = false; };
inline constexpr CumSumConfig defaultCumSumConfig{};
struct PadParams {
    uint16_t leftPad = 0, rightPad = 0;
    int32_t padValue = 0;
};
struct UnPadParams { uint16_t leftPad = 0, rightPad = 0; };
struct TopKInfo { int32_t outter = 1, inner = 0, n = 0; };
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };

namespace asc_detail {

struct Tile {
    asc_local dst, dst1, dst2, dst3, src0, src1, src2, tmp;
    ASC_UNCOUNTED Tile(const asc_local &to, const asc_local &from, const asc_local &scratch)
        : dst(to), dst1(nothing), dst2(nothing), dst3(nothing), src0(from), src1(nothing), src2(nothing), tmp(scratch) {
    }
};

template <class T> ASC_INLINE void run_tile(uint32_t op, const Tile &t, const asc_tile &shape, uint64_t scalar,
                                            asc::At at) {
    asc_tile_function(op, asc::dtype<T>, t.dst, t.dst1, t.dst2, t.dst3, t.src0, t.src1, t.src2, t.tmp, shape, scalar,
                      at.line);
}

// Without an explicit shape the tile has the shape of the tiling.
ASC_INLINE asc_tile soft_shape(const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info, bool wide) {
    const bool own = info.srcM != 0;
    return {own ? info.srcM : tiling.srcM,
            own ? info.srcK : tiling.srcK,
            own ? info.oriSrcM : tiling.srcM,
            own ? info.oriSrcK : tiling.srcK,
            1,
            wide};
}

template <class T, class U>
ASC_INLINE void soft(uint32_t op, const LocalTensor<T> &dst, const LocalTensor<U> &sum, const LocalTensor<U> &max,
                     const LocalTensor<T> &src, const asc_local &tmp, const SoftMaxTiling &tiling,
                     const SoftMaxShapeInfo &info, asc::At at) {
    static_assert(asc::same<T, U> || asc::same<U, float>, "sum and max have the data's type or are float");
    Tile tile(dst.asc_where(), src.asc_where(), tmp);
    tile.dst1 = sum.asc_where();
    tile.dst2 = max.asc_where();
    asc_detail::run_tile<T>(op, tile, soft_shape(tiling, info, !asc::same<T, U>), 0, at);
}

}  // namespace asc_detail

#define ASC_SOFT(name, op, Tiling)                                                                                     \
    template <class T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, class U>    \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<U> &sum, const LocalTensor<U> &max,              \
                         const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer, const Tiling &tiling, \
                         const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {                                   \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::soft(op, dst, sum, max, src, sharedTmpBuffer.asc_where(), tiling, info, at);                       \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, class U>    \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<U> &sum, const LocalTensor<U> &max,              \
                         const LocalTensor<T> &src, const Tiling &tiling, const SoftMaxShapeInfo &info = {},           \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::soft(op, dst, sum, max, src, asc_detail::left_over(), tiling, info, at);                           \
    }
ASC_SOFT(SoftMax, ASC_SOFTMAX, SoftMaxTiling)
ASC_SOFT(LogSoftMax, ASC_LOGSOFTMAX, LogSoftMaxTiling)
#undef ASC_SOFT

// Writes only the result.
template <class T, bool isReuseSource = false, bool isBasicBlock = false>
ASC_INLINE void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                        const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling,
                        const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SoftMax", T, half, float);
    asc_detail::run_tile<T>(ASC_SOFTMAX, {dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where()},
                            asc_detail::soft_shape(tiling, info, false), 0, at);
}
template <class T, bool isReuseSource = false, bool isBasicBlock = false>
ASC_INLINE void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SoftMaxTiling &tiling,
                        const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SoftMax", T, half, float);
    asc_detail::run_tile<T>(ASC_SOFTMAX, {dst.asc_where(), src.asc_where(), asc_detail::left_over()},
                            asc_detail::soft_shape(tiling, info, false), 0, at);
}

// dst[row] is the reduction over the first n elements of each row; rows are `inner` elements apart.
#define ASC_ROW_REDUCE(name, op, Params, ...)                                                                          \
    template <class T, __VA_ARGS__>                                                                                    \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                         \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, const Params &p, asc::At at = ASC_HERE) {        \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::run_tile<T>(op, {dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where()},                   \
                                {p.outter, p.inner, p.outter, p.n, 1, 0}, 0, at);                                      \
    }                                                                                                                  \
    template <class T, __VA_ARGS__>                                                                                    \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Params &p,                        \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::run_tile<T>(op, {dst.asc_where(), src.asc_where(), asc_detail::left_over()},                       \
                                {p.outter, p.inner, p.outter, p.n, 1, 0}, 0, at);                                      \
    }
ASC_ROW_REDUCE(Sum, ASC_SUM, SumParams, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false)
ASC_ROW_REDUCE(Mean, ASC_MEAN, MeanParams, class accType = T, bool isReuseSource = false, bool isBasicBlock = false,
               int32_t reduceDim = -1)
#undef ASC_ROW_REDUCE

template <class T, const CumSumConfig &config = defaultCumSumConfig>
ASC_INLINE void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
                       const LocalTensor<uint8_t> &sharedTmpBuffer, const CumSumInfo &info, asc::At at = ASC_HERE) {
    ASC_TAKES("CumSum", T, half, float);
    asc_detail::Tile tile(dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where());
    if constexpr (config.outputLastRow) tile.dst1 = lastRow.asc_where();
    asc_detail::run_tile<T>(ASC_CUMSUM, tile, {info.outter, info.inner, info.outter, info.inner, config.isLastAxis, 0},
                            0, at);
}
template <class T, const CumSumConfig &config = defaultCumSumConfig>
ASC_INLINE void CumSum(const LocalTensor<T> &dst, const LocalTensor<T> &lastRow, const LocalTensor<T> &src,
                       const CumSumInfo &info, asc::At at = ASC_HERE) {
    AscendC::CumSum<T, config>(dst, lastRow, src, LocalTensor<uint8_t>(asc_detail::left_over()), info, at);
}

// Broadcasts (1, columns), (rows, 1) or a single element to the whole tile.
#define ASC_BROADCAST_AS(name)                                                                                         \
    template <class T, int32_t dim, int32_t axis, bool isReuseSource = false>                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],           \
                         const uint32_t srcShape[dim], const LocalTensor<uint8_t> &sharedTmpBuffer,                    \
                         asc::At at = ASC_HERE) {                                                                      \
        static_assert(dim == 1 || dim == 2, #name " takes tensors of one or two dimensions");                          \
        static_assert(axis >= 0 && axis < dim, #name " stretches an axis that the tensor has");                        \
        ASC_TAKES(#name, T, int8_t, uint8_t, half, float);                                                             \
        const uint32_t rows = dim == 1 ? 1 : dstShape[0], columns = dstShape[dim - 1];                                 \
        asc_detail::run_tile<T>(ASC_BROADCAST, {dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where()},        \
                                {rows, columns, rows, columns, dim == 1 ? 1u : static_cast<uint32_t>(axis), 0}, 0,     \
                                at);                                                                                   \
    }                                                                                                                  \
    template <class T, int32_t dim, int32_t axis, bool isReuseSource = false>                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim],           \
                         const uint32_t srcShape[dim], asc::At at = ASC_HERE) {                                        \
        AscendC::name<T, dim, axis, isReuseSource>(dst, src, dstShape, srcShape,                                       \
                                                   LocalTensor<uint8_t>(asc_detail::left_over()), at);                 \
    }
ASC_BROADCAST_AS(Broadcast)
ASC_BROADCAST_AS(BroadCast)
#undef ASC_BROADCAST_AS

template <class T>
ASC_INLINE void Pad(const LocalTensor<T> &dst, const LocalTensor<T> &src, PadParams &p,
                    const LocalTensor<uint8_t> &sharedTmpBuffer, PadTiling &tiling, asc::At at = ASC_HERE) {
    ASC_TAKES("Pad", T, int16_t, uint16_t, half, int32_t, uint32_t, float);
    asc_detail::run_tile<T>(
        ASC_PAD, {dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where()},
        {tiling.srcHeight, tiling.srcWidth, tiling.srcHeight, tiling.srcOriWidth, 1, p.leftPad + 256u * p.rightPad},
        asc_bits(static_cast<T>(p.padValue)), at);
}
template <class T> ASC_INLINE void Pad(const LocalTensor<T> &dst, const LocalTensor<T> &src, PadParams &p,
                                       PadTiling &tiling, asc::At at = ASC_HERE) {
    AscendC::Pad(dst, src, p, LocalTensor<uint8_t>(asc_detail::left_over()), tiling, at);
}
template <class T>
ASC_INLINE void UnPad(const LocalTensor<T> &dst, const LocalTensor<T> &src, UnPadParams &p,
                      LocalTensor<uint8_t> &sharedTmpBuffer, UnPadTiling &tiling, asc::At at = ASC_HERE) {
    ASC_TAKES("UnPad", T, int16_t, uint16_t, half, int32_t, uint32_t, float);
    asc_detail::run_tile<T>(ASC_UNPAD, {dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where()},
                            {tiling.srcHeight, tiling.srcWidth, tiling.srcHeight, tiling.srcWidth - p.rightPad, 1, 0},
                            0, at);
}
template <class T> ASC_INLINE void UnPad(const LocalTensor<T> &dst, const LocalTensor<T> &src, UnPadParams &p,
                                         UnPadTiling &tiling, asc::At at = ASC_HERE) {
    LocalTensor<uint8_t> tmp(asc_detail::left_over());
    AscendC::UnPad(dst, src, p, tmp, tiling, at);
}

template <class T, bool isReuseSource = false>
ASC_INLINE void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                          const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,
                          const LocalTensor<T> &gamma, const LocalTensor<T> &beta,
                          const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon, LayerNormTiling &tiling,
                          asc::At at = ASC_HERE) {
    ASC_TAKES("LayerNorm", T, half, float);
    asc_detail::Tile tile(output.asc_where(), inputX.asc_where(), sharedTmpBuffer.asc_where());
    tile.dst1 = outputMean.asc_where();
    tile.dst2 = outputVariance.asc_where();
    tile.src1 = gamma.asc_where();
    tile.src2 = beta.asc_where();
    const uint32_t rows = tiling.bLength * tiling.sLength;
    asc_detail::run_tile<T>(ASC_LAYERNORM, tile, {rows, tiling.hLength, rows, tiling.originalHLength, 1, 0},
                            asc_bits(epsilon), at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                          const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,
                          const LocalTensor<T> &gamma, const LocalTensor<T> &beta, const T epsilon,
                          LayerNormTiling &tiling, asc::At at = ASC_HERE) {
    AscendC::LayerNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta,
                                         LocalTensor<uint8_t>(asc_detail::left_over()), epsilon, tiling, at);
}
template <class T, bool isBasicBlock = false>
ASC_INLINE void RmsNorm(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &gamma,
                        const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon, const RmsNormTiling &tiling,
                        asc::At at = ASC_HERE) {
    ASC_TAKES("RmsNorm", T, half, float);
    asc_detail::Tile tile(dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where());
    tile.src1 = gamma.asc_where();
    const uint32_t rows = tiling.bLength * tiling.sLength;
    asc_detail::run_tile<T>(ASC_RMSNORM, tile, {rows, tiling.hLength, rows, tiling.originalHLength, 1, 0},
                            asc_bits(epsilon), at);
}
template <class T, bool isBasicBlock = false>
ASC_INLINE void RmsNorm(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &gamma,
                        const T epsilon, const RmsNormTiling &tiling, asc::At at = ASC_HERE) {
    AscendC::RmsNorm<T, isBasicBlock>(dst, src, gamma, LocalTensor<uint8_t>(asc_detail::left_over()), epsilon, tiling,
                                      at);
}

// Normalises groups of channels over their channels and elements: (n, c, hw), hw in whole blocks.
template <class T, bool isReuseSource = false>
ASC_INLINE void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                          const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,
                          const LocalTensor<T> &gamma, const LocalTensor<T> &beta,
                          const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon, GroupNormTiling &tiling,
                          asc::At at = ASC_HERE) {
    ASC_TAKES("GroupNorm", T, half, float);
    asc_detail::Tile tile(output.asc_where(), inputX.asc_where(), sharedTmpBuffer.asc_where());
    tile.dst1 = outputMean.asc_where();
    tile.dst2 = outputVariance.asc_where();
    tile.src1 = gamma.asc_where();
    tile.src2 = beta.asc_where();
    const uint32_t channels = tiling.g ? tiling.c / tiling.g : 0, columns = channels * tiling.hw;
    asc_detail::run_tile<T>(ASC_GROUPNORM, tile, {tiling.n * tiling.g, columns, tiling.g, columns, channels, 0},
                            asc_bits(epsilon), at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                          const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX,
                          const LocalTensor<T> &gamma, const LocalTensor<T> &beta, const T epsilon,
                          GroupNormTiling &tiling, asc::At at = ASC_HERE) {
    AscendC::GroupNorm<T, isReuseSource>(output, outputMean, outputVariance, inputX, gamma, beta,
                                         LocalTensor<uint8_t>(asc_detail::left_over()), epsilon, tiling, at);
}

struct SelectWithBytesMaskShapeInfo { uint32_t firstAxis = 0, srcLastAxis = 0, maskLastAxis = 0; };

namespace asc_detail {
template <class T, class U>
ASC_INLINE void select_bytes(const LocalTensor<T> &dst, const LocalTensor<T> &src, T scalar, const LocalTensor<U> &mask,
                             const LocalTensor<uint8_t> &tmp, const SelectWithBytesMaskShapeInfo &info,
                             uint32_t where_set, asc::At at) {
    ASC_TAKES("SelectWithBytesMask", T, half, float);
    static_assert(sizeof(U) <= 4, "SelectWithBytesMask takes its mask as bool or integers of 8 to 32 bits");
    Tile tile(dst.asc_where(), src.asc_where(), tmp.asc_where());
    tile.src1 = mask.asc_where();
    asc_detail::run_tile<T>(ASC_SELECTBYTES, tile,
                            {info.firstAxis, info.srcLastAxis, info.firstAxis, info.srcLastAxis, info.maskLastAxis,
                             where_set + 256u * static_cast<uint32_t>(sizeof(U))},
                            asc_bits(scalar), at);
}
}  // namespace asc_detail

// Selects the first of tensor and scalar (in the order of the arguments) where the mask is 0, the second elsewhere.
template <class T, class U, bool isReuseMask = true>
ASC_INLINE void SelectWithBytesMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, T src1,
                                    const LocalTensor<U> &mask, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                    const SelectWithBytesMaskShapeInfo &info, asc::At at = ASC_HERE) {
    asc_detail::select_bytes(dst, src0, src1, mask, sharedTmpBuffer, info, 0, at);
}
template <class T, class U, bool isReuseMask = true>
ASC_INLINE void SelectWithBytesMask(const LocalTensor<T> &dst, T src0, const LocalTensor<T> &src1,
                                    const LocalTensor<U> &mask, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                    const SelectWithBytesMaskShapeInfo &info, asc::At at = ASC_HERE) {
    asc_detail::select_bytes(dst, src1, src0, mask, sharedTmpBuffer, info, 1, at);
}

// The k largest (or smallest) of each row, in order, with their indices.
template <class T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSource = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL>
ASC_INLINE void TopK(const LocalTensor<T> &dstValue, const LocalTensor<int32_t> &dstIndex, const LocalTensor<T> &src,
                     const LocalTensor<int32_t> &srcIndex, const LocalTensor<bool> &finish,
                     const LocalTensor<uint8_t> &tmp, const int32_t k, const TopkTiling &tiling, const TopKInfo &info,
                     const bool isLargest = true, asc::At at = ASC_HERE) {
    ASC_TAKES("TopK", T, half, float);
    static_assert(!isHasfinish, "the simulator's TopK finishes every row");
    (void)finish, (void)tiling;
    asc_detail::Tile tile(dstValue.asc_where(), src.asc_where(), tmp.asc_where());
    tile.dst1 = dstIndex.asc_where();
    if constexpr (isInitIndex) tile.src1 = srcIndex.asc_where();
    asc_detail::run_tile<T>(
        ASC_TOPK, tile,
        {static_cast<uint32_t>(info.outter), static_cast<uint32_t>(info.inner), static_cast<uint32_t>(info.outter),
         static_cast<uint32_t>(info.n), static_cast<uint32_t>(k), !isLargest},
        0, at);
}
template <class T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSource = false,
          TopKMode topkMode = TopKMode::TOPK_NORMAL>
ASC_INLINE void TopK(const LocalTensor<T> &dstValue, const LocalTensor<int32_t> &dstIndex, const LocalTensor<T> &src,
                     const LocalTensor<int32_t> &srcIndex, const LocalTensor<bool> &finish, const int32_t k,
                     const TopkTiling &tiling, const TopKInfo &info, const bool isLargest = true,
                     asc::At at = ASC_HERE) {
    AscendC::TopK<T, isInitIndex, isHasfinish, isReuseSource, topkMode>(dstValue, dstIndex, src, srcIndex, finish,
                                                                        LocalTensor<uint8_t>(asc_detail::left_over()),
                                                                        k, tiling, info, isLargest, at);
}

}  // namespace AscendC

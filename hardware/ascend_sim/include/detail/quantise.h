// Scales and offsets between integers and floating-point numbers.
#pragma once
#include "message.h"
#include "tile.h"

namespace AscendC {

namespace asc_detail {
// Packs two numbers into one argument.
ASC_INLINE uint64_t both(float low, float high) { return asc_bits(low) | asc_bits(high) << 32; }

template <class T>
ASC_INLINE void quantise(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const asc_local &scales,
                         const asc_local &offsets, float scale, float offset, const asc_local &tmp, uint32_t columns,
                         uint32_t count, asc::At at) {
    ASC_TAKES("AscendQuant", T, half, float);
    Tile tile(dst.asc_where(), src.asc_where(), tmp);
    tile.src1 = scales;
    tile.src2 = offsets;
    const uint32_t rows = columns ? count / columns : 0;
    if (rows * columns != count)
        asc_misuse(asc_text_of("AscendQuant: calCount is no multiple of the number of scales"), at.line);
    asc_detail::run_tile<T>(ASC_QUANT, tile, {rows, columns, rows, columns, 1, 0}, both(scale, offset), at);
}
}  // namespace asc_detail

// round(src * scale + offset) to int8_t.
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const float scale, const float offset,
                            const uint32_t calCount, asc::At at = ASC_HERE) {
    asc_detail::quantise(dst, src, asc_detail::nothing, asc_detail::nothing, scale, offset, sharedTmpBuffer.asc_where(),
                         calCount, calCount, at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const float scale, const float offset,
                            asc::At at = ASC_HERE) {
    AscendC::AscendQuant<T, isReuseSource>(dst, src, sharedTmpBuffer, scale, offset, src.GetSize(), at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale,
                            const float offset, const uint32_t calCount, asc::At at = ASC_HERE) {
    asc_detail::quantise(dst, src, asc_detail::nothing, asc_detail::nothing, scale, offset, asc_detail::left_over(),
                         calCount, calCount, at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale,
                            const float offset, asc::At at = ASC_HERE) {
    AscendC::AscendQuant<T, isReuseSource>(dst, src, scale, offset, src.GetSize(), at);
}
// One scale per column, and one offset per column or for all.
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor,
                            const LocalTensor<T> &offsetTensor, const uint32_t scaleCount, const uint32_t offsetCount,
                            const uint32_t calCount, asc::At at = ASC_HERE) {
    (void)offsetCount;
    asc_detail::quantise(dst, src, scaleTensor.asc_where(), offsetTensor.asc_where(), 0, 0, sharedTmpBuffer.asc_where(),
                         scaleCount, calCount, at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                            const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor,
                            const T offset, const uint32_t scaleCount, const uint32_t calCount, asc::At at = ASC_HERE) {
    asc_detail::quantise(dst, src, scaleTensor.asc_where(), asc_detail::nothing, 0, static_cast<float>(offset),
                         sharedTmpBuffer.asc_where(), scaleCount, calCount, at);
}

struct DequantParams { uint32_t m = 0, n = 0, calCount = 0; };

namespace asc_detail {
template <class D, class S>
ASC_INLINE void dequantise(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src, const asc_local &scales,
                           float scale, const asc_local &tmp, const DequantParams &p, asc::At at) {
    ASC_TAKES("AscendDequant", D, half, bfloat16_t, float);
    static_assert(asc::one_of<S, uint64_t, float, bfloat16_t>,
                  "AscendDequant takes its scale as uint64_t, float or bfloat16_t");
    Tile tile(dst.asc_where(), src.asc_where(), tmp);
    tile.src1 = scales;
    asc_detail::run_tile<D>(ASC_DEQUANT, tile, {p.m, p.n, p.m, p.calCount, asc::dtype<S>, 0}, both(scale, 0), at);
}
}  // namespace asc_detail

// src * deqScale from int32_t. Rows of the result are whole blocks; the first calCount elements of each row are used.
template <class D, class S>
ASC_INLINE void AscendDequant(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src,
                              const LocalTensor<S> &deqScale, const LocalTensor<uint8_t> &sharedTmpBuffer,
                              DequantParams params, asc::At at = ASC_HERE) {
    asc_detail::dequantise<D, S>(dst, src, deqScale.asc_where(), 0, sharedTmpBuffer.asc_where(), params, at);
}
template <class D, class S>
ASC_INLINE void AscendDequant(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src,
                              const LocalTensor<S> &deqScale, DequantParams params, asc::At at = ASC_HERE) {
    asc_detail::dequantise<D, S>(dst, src, deqScale.asc_where(), 0, asc_detail::left_over(), params, at);
}
template <class D, class S>
ASC_INLINE void AscendDequant(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src, const S deqScale,
                              const LocalTensor<uint8_t> &sharedTmpBuffer, DequantParams params,
                              asc::At at = ASC_HERE) {
    asc_detail::dequantise<D, S>(dst, src, asc_detail::nothing, static_cast<float>(deqScale),
                                 sharedTmpBuffer.asc_where(), params, at);
}
template <class D, class S>
ASC_INLINE void AscendDequant(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src, const S deqScale,
                              DequantParams params, asc::At at = ASC_HERE) {
    asc_detail::dequantise<D, S>(dst, src, asc_detail::nothing, static_cast<float>(deqScale), asc_detail::left_over(),
                                 params, at);
}

struct AntiQuantShapeInfo { uint32_t offsetHeight = 0, offsetWidth = 0, scaleHeight = 0, scaleWidth = 0; };

namespace asc_detail {
template <class S, class D, bool transposed>
ASC_INLINE void antiquantise(const LocalTensor<D> &dst, const LocalTensor<S> &src, const asc_local &offsets,
                             const asc_local &scales, float offset, float scale, const asc_local &tmp, uint32_t k,
                             asc::At at) {
    ASC_TAKES("AscendAntiQuant", D, half, bfloat16_t);
    static_assert(asc::one_of<S, int8_t, int4b_t>, "AscendAntiQuant takes int8_t or int4b_t");
    Tile tile(dst.asc_where(), src.asc_where(), tmp);
    tile.src1 = offsets;
    tile.src2 = scales;
    const uint32_t n = k ? src.GetSize() / k : 0, rows = transposed ? n : k, columns = transposed ? k : n;
    asc_detail::run_tile<D>(ASC_ANTIQUANT, tile, {rows, columns, rows, columns, asc::dtype<S>, transposed},
                            both(offset, scale), at);
}
}  // namespace asc_detail

// (src + offset) * scale of a (k, n) matrix, or (n, k) if transposed; one offset and one scale per n.
template <class S, class D, bool isTranspose>
ASC_INLINE void AscendAntiQuant(const LocalTensor<D> &dst, const LocalTensor<S> &src, const LocalTensor<D> &offset,
                                const LocalTensor<D> &scale, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                const uint32_t k, const AntiQuantShapeInfo &shapeInfo = {}, asc::At at = ASC_HERE) {
    (void)shapeInfo;
    asc_detail::antiquantise<S, D, isTranspose>(dst, src, offset.asc_where(), scale.asc_where(), 0, 0,
                                                sharedTmpBuffer.asc_where(), k, at);
}
template <class S, class D, bool isTranspose>
ASC_INLINE void AscendAntiQuant(const LocalTensor<D> &dst, const LocalTensor<S> &src, const D offset, const D scale,
                                const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t k,
                                const AntiQuantShapeInfo &shapeInfo = {}, asc::At at = ASC_HERE) {
    (void)shapeInfo;
    asc_detail::antiquantise<S, D, isTranspose>(dst, src, asc_detail::nothing, asc_detail::nothing,
                                                static_cast<float>(offset), static_cast<float>(scale),
                                                sharedTmpBuffer.asc_where(), k, at);
}

}  // namespace AscendC

// Softmax with known sums, and over rows that arrive in parts.
#pragma once
#include "tile.h"

namespace AscendC {

// Sum and max have the data's type, or are float beside half data.
#define ASC_BESIDE(T, U)                                                                                               \
    static_assert(asc::same<T, U> || asc::same<U, float>, "sum and max have the data's type or are float")

// exp(src - max) / sum.
template <class T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, class U>
ASC_INLINE void SimpleSoftMax(const LocalTensor<T> &dst, const LocalTensor<U> &inSum, const LocalTensor<U> &inMax,
                              const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                              const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SimpleSoftMax", T, half, float);
    ASC_BESIDE(T, U);
    asc_detail::Tile tile(dst.asc_where(), src.asc_where(), sharedTmpBuffer.asc_where());
    tile.src1 = inSum.asc_where();
    tile.src2 = inMax.asc_where();
    asc_detail::run_tile<T>(ASC_SIMPLESOFTMAX, tile, asc_detail::soft_shape(tiling, info, !asc::same<T, U>), 0, at);
}
template <class T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, class U>
ASC_INLINE void SimpleSoftMax(const LocalTensor<T> &dst, const LocalTensor<U> &inSum, const LocalTensor<U> &inMax,
                              const LocalTensor<T> &src, const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {},
                              asc::At at = ASC_HERE) {
    AscendC::SimpleSoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ>(
        dst, inSum, inMax, src, LocalTensor<uint8_t>(asc_detail::left_over()), tiling, info, at);
}

namespace asc_detail {
template <class T, class U>
ASC_INLINE void flash(uint32_t op, bool update, const LocalTensor<T> &dst, const LocalTensor<U> &sum,
                      const LocalTensor<U> &max, const LocalTensor<T> &src, const LocalTensor<T> &factor,
                      const LocalTensor<U> &in_sum, const LocalTensor<U> &in_max, const asc_local &tmp,
                      const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info, asc::At at) {
    ASC_BESIDE(T, U);
    Tile tile(dst.asc_where(), src.asc_where(), tmp);
    tile.dst1 = sum.asc_where();
    tile.dst2 = max.asc_where();
    tile.dst3 = factor.asc_where();
    tile.src1 = in_sum.asc_where();
    tile.src2 = in_max.asc_where();
    asc_tile shape = soft_shape(tiling, info, !asc::same<T, U>);
    shape.flags += 2u * update;
    asc_detail::run_tile<T>(op, tile, shape, 0, at);
}
}  // namespace asc_detail

// The next part of each row; isUpdate continues from inSum and inMax. expMax is the factor for earlier results.
template <class T, bool isReuseSource = false, bool isBasicBlock = false, class U>
ASC_INLINE void SoftmaxFlash(const LocalTensor<T> &dst, const LocalTensor<U> &sum, const LocalTensor<U> &max,
                             const LocalTensor<T> &src, const LocalTensor<T> &expMax, const LocalTensor<U> &inSum,
                             const LocalTensor<U> &inMax, const LocalTensor<uint8_t> &sharedTmpBuffer,
                             const SoftMaxTiling &tiling, bool isUpdate = false, const SoftMaxShapeInfo &info = {},
                             asc::At at = ASC_HERE) {
    ASC_TAKES("SoftmaxFlash", T, half, float);
    asc_detail::flash(ASC_SOFTMAXFLASH, isUpdate, dst, sum, max, src, expMax, inSum, inMax, sharedTmpBuffer.asc_where(),
                      tiling, info, at);
}
template <class T, bool isReuseSource = false, bool isBasicBlock = false, class U>
ASC_INLINE void SoftmaxFlash(const LocalTensor<T> &dst, const LocalTensor<U> &sum, const LocalTensor<U> &max,
                             const LocalTensor<T> &src, const LocalTensor<T> &expMax, const LocalTensor<U> &inSum,
                             const LocalTensor<U> &inMax, const SoftMaxTiling &tiling, bool isUpdate = false,
                             const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SoftmaxFlash", T, half, float);
    asc_detail::flash(ASC_SOFTMAXFLASH, isUpdate, dst, sum, max, src, expMax, inSum, inMax, asc_detail::left_over(),
                      tiling, info, at);
}

// The same without the division by the sum.
template <class T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, class U>
ASC_INLINE void SoftmaxFlashV2(const LocalTensor<T> &dst, const LocalTensor<U> &expSum, const LocalTensor<U> &max,
                               const LocalTensor<T> &src, const LocalTensor<T> &expMax, const LocalTensor<U> &inExpSum,
                               const LocalTensor<U> &inMax, const LocalTensor<uint8_t> &sharedTmpBuffer,
                               const SoftMaxTiling &tiling, const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SoftmaxFlashV2", T, half, float);
    asc_detail::flash(ASC_SOFTMAXFLASHV2, isUpdate, dst, expSum, max, src, expMax, inExpSum, inMax,
                      sharedTmpBuffer.asc_where(), tiling, info, at);
}
template <class T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false,
          bool isDataFormatNZ = false, class U>
ASC_INLINE void SoftmaxFlashV2(const LocalTensor<T> &dst, const LocalTensor<U> &expSum, const LocalTensor<U> &max,
                               const LocalTensor<T> &src, const LocalTensor<T> &expMax, const LocalTensor<U> &inExpSum,
                               const LocalTensor<U> &inMax, const SoftMaxTiling &tiling,
                               const SoftMaxShapeInfo &info = {}, asc::At at = ASC_HERE) {
    ASC_TAKES("SoftmaxFlashV2", T, half, float);
    asc_detail::flash(ASC_SOFTMAXFLASHV2, isUpdate, dst, expSum, max, src, expMax, inExpSum, inMax,
                      asc_detail::left_over(), tiling, info, at);
}
#undef ASC_BESIDE

}  // namespace AscendC

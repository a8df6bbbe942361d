// Instructions that create indices, spread, gather, transpose and sort elements.
#pragma once
#include "walk.h"

namespace AscendC {

// Each of eight elements fills a block of 32 bytes.
template <class T> ASC_INLINE void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, asc::Repeat repeatTimes,
                                        const BrcbRepeatParams &params, asc::At at = ASC_HERE) {
    ASC_TAKES("Brcb", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_walk walk = asc_detail::strides(params.dstBlkStride, params.dstRepStride);
    walk.repeat = asc_detail::times(repeatTimes);
    asc_brcb(asc::dtype<T>, dst.asc_where(), src.asc_where(), walk, at.line);
}

template <class T> ASC_INLINE void CreateVecIndex(const LocalTensor<T> &dst, const T &first, uint32_t calCount,
                                                  asc::At at = ASC_HERE) {
    ASC_TAKES("CreateVecIndex", T, int16_t, half, int32_t, float);
    asc_index(asc::dtype<T>, dst.asc_where(), asc_bits(first), asc_bits(T(1)), calCount, at.line);
}
template <class T> ASC_INLINE void ArithProgression(const LocalTensor<T> &dst, const T first, const T diff,
                                                    int32_t count, asc::At at = ASC_HERE) {
    ASC_TAKES("ArithProgression", T, int16_t, half, int32_t, float);
    asc_index(asc::dtype<T>, dst.asc_where(), asc_bits(first), asc_bits(diff), static_cast<uint32_t>(count), at.line);
}
template <class T> ASC_INLINE void Arange(const LocalTensor<T> &dst, const T first, const T diff, int32_t count,
                                          asc::At at = ASC_HERE) {
    AscendC::ArithProgression(dst, first, diff, count, at);
}

// Offsets are in bytes from the start of src plus srcBaseAddr.
template <class T>
ASC_INLINE void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offsets,
                       uint32_t srcBaseAddr, uint32_t count, asc::At at = ASC_HERE) {
    ASC_TAKES("Gather", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_gather(asc::dtype<T>, dst.asc_where(), src.asc_where(), offsets.asc_where(), srcBaseAddr, 0,
               asc_detail::count(count), at.line);
}
template <class T, class Mask>
ASC_INLINE void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offsets,
                       uint32_t srcBaseAddr, const Mask &mask, asc::Repeat repeatTimes, uint16_t dstRepStride,
                       asc::At at = ASC_HERE) {
    ASC_TAKES("Gather", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_gather(asc::dtype<T>, dst.asc_where(), src.asc_where(), offsets.asc_where(), srcBaseAddr, 0,
               asc_detail::masked<true>(mask, repeatTimes, asc_detail::strides(1, dstRepStride)), at.line);
}
// Gathers whole blocks of 32 bytes, eight a repeat.
template <class T>
ASC_INLINE void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offsets,
                        asc::Repeat repeatTimes, const GatherRepeatParams &params, asc::At at = ASC_HERE) {
    asc_walk walk = asc_detail::strides(params.dstBlkStride, params.dstRepStride);
    walk.repeat = asc_detail::times(repeatTimes);
    asc_gather(asc::dtype<T>, dst.asc_where(), src.asc_where(), offsets.asc_where(), 0, 1, walk, at.line);
}

struct GatherMaskParams {
    uint8_t src0BlockStride = 1;
    uint16_t repeatTimes = 0, src0RepeatStride = 0;
    uint8_t src1RepeatStride = 0;
    constexpr GatherMaskParams() = default;
    constexpr GatherMaskParams(uint8_t block, uint16_t repeat, uint16_t src0_repeat, uint8_t src1_repeat)
        : src0BlockStride(block), repeatTimes(repeat), src0RepeatStride(src0_repeat), src1RepeatStride(src1_repeat) {}
};

namespace asc_detail {
ASC_INLINE asc_walk gather_strides(const GatherMaskParams &p) {
    asc_walk walk = strides(1, 8, p.src0BlockStride, p.src0RepeatStride);
    walk.src1_repeat = p.src1RepeatStride;
    walk.repeat = p.repeatTimes;
    return walk;
}
}  // namespace asc_detail

// Keeps the elements whose bit is set in a fixed pattern (1 to 7) or in a tensor; rsvdCnt is their number.
template <class T>
ASC_INLINE void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, uint8_t src1Pattern, bool reduceMode,
                           uint32_t mask, const GatherMaskParams &params, uint64_t &rsvdCnt, asc::At at = ASC_HERE) {
    asc_gather_mask(asc::dtype<T>, dst.asc_where(), src0.asc_where(), asc_local{0, 0, ASC_UB}, src1Pattern, reduceMode,
                    mask, asc_detail::gather_strides(params), at.line);
    rsvdCnt = asc_gather_mask_count(at.line);
}
template <class T, class U>
ASC_INLINE void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<U> &src1Pattern,
                           bool reduceMode, uint32_t mask, const GatherMaskParams &params, uint64_t &rsvdCnt,
                           asc::At at = ASC_HERE) {
    static_assert(sizeof(T) == sizeof(U) && asc::one_of<U, uint8_t, uint16_t, uint32_t, uint64_t>,
                  "GatherMask takes its pattern as unsigned integers of the data's width");
    asc_gather_mask(asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1Pattern.asc_where(), 0, reduceMode, mask,
                    asc_detail::gather_strides(params), at.line);
    rsvdCnt = asc_gather_mask_count(at.line);
}

// Transposes 16 x 16 elements of 16 bits.
template <class T> ASC_INLINE void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                             asc::At at = ASC_HERE) {
    ASC_TAKES("Transpose", T, int16_t, uint16_t, half);
    asc_transpose16(asc::dtype<T>, dst.asc_where(), src.asc_where(), at.line);
}

struct TransDataTo5HDParams {
    bool dstHighHalf = false, srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0, srcRepStride = 0;
    constexpr TransDataTo5HDParams() = default;
    constexpr TransDataTo5HDParams(bool dst_high, bool src_high, uint8_t repeat, uint16_t dst_stride,
                                   uint16_t src_stride)
        : dstHighHalf(dst_high), srcHighHalf(src_high), repeatTimes(repeat), dstRepStride(dst_stride),
          srcRepStride(src_stride) {}
};

// Transposes 16 blocks of 32 bytes; the lists hold tensors or their addresses.
template <class T>
ASC_INLINE void TransDataTo5HD(uint64_t dstList[16], uint64_t srcList[16], const TransDataTo5HDParams &p,
                               asc::At at = ASC_HERE) {
    ASC_TAKES("TransDataTo5HD", T, int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t, float);
    asc_blocks16 blocks;
    for (uint32_t i = 0; i < 16; ++i)
        blocks.dst[i] = static_cast<uint32_t>(dstList[i]), blocks.src[i] = static_cast<uint32_t>(srcList[i]);
    asc_transpose_blocks(asc::dtype<T>, blocks,
                         {p.repeatTimes, p.dstRepStride, p.srcRepStride, p.dstHighHalf, p.srcHighHalf}, at.line);
}
template <class T>
ASC_INLINE void TransDataTo5HD(const LocalTensor<T> (&dstList)[16], const LocalTensor<T> (&srcList)[16],
                               const TransDataTo5HDParams &p, asc::At at = ASC_HERE) {
    uint64_t to[16], from[16];
    for (uint32_t i = 0; i < 16; ++i) to[i] = dstList[i].GetPhyAddr(), from[i] = srcList[i].GetPhyAddr();
    AscendC::TransDataTo5HD<T>(to, from, p, at);
}

// Sorts each 32 elements in descending order into pairs of value and index.
template <class T>
ASC_INLINE void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &src1,
                       int32_t repeatTimes, asc::At at = ASC_HERE) {
    ASC_TAKES("Sort32", T, half, float);
    asc_sort32(asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), static_cast<uint32_t>(repeatTimes),
               at.line);
}

}  // namespace AscendC

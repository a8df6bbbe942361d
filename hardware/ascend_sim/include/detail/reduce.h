// Reductions of a whole tensor, of each repeat, of each block, of pairs.
#pragma once
#include "walk.h"

namespace AscendC {

// dst[0] is the value; with calIndex dst[1] holds the bits of the index.
#define ASC_REDUCE(name, op)                                                                                           \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,             \
                         int32_t count, bool calIndex = false, asc::At at = ASC_HERE) {                                \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_reduce(op, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), calIndex, 8,                 \
                   asc_detail::count(count), at.line);                                                                 \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,             \
                         int32_t mask, int32_t repeatTimes, int32_t srcRepStride, bool calIndex = false,               \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_reduce(op, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), calIndex,                    \
                   static_cast<uint32_t>(srcRepStride),                                                                \
                   asc_detail::masked<isSetMask>(static_cast<uint64_t>(mask), static_cast<uint32_t>(repeatTimes),      \
                                                 asc_detail::strides(1, 8, 1, static_cast<uint16_t>(srcRepStride))),   \
                   at.line);                                                                                           \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,             \
                         const uint64_t mask[], int32_t repeatTimes, int32_t srcRepStride, bool calIndex = false,      \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_reduce(op, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), calIndex,                    \
                   static_cast<uint32_t>(srcRepStride),                                                                \
                   asc_detail::masked<isSetMask>(mask, static_cast<uint32_t>(repeatTimes),                             \
                                                 asc_detail::strides(1, 8, 1, static_cast<uint16_t>(srcRepStride))),   \
                   at.line);                                                                                           \
    }
ASC_REDUCE(ReduceMax, ASC_REDUCE_MAX)
ASC_REDUCE(ReduceMin, ASC_REDUCE_MIN)
#undef ASC_REDUCE

template <class T, bool isSetMask = true>
ASC_INLINE void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                          int32_t count, asc::At at = ASC_HERE) {
    ASC_TAKES("ReduceSum", T, half, float);
    asc_reduce(ASC_REDUCE_SUM, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), 0, 8,
               asc_detail::count(count), at.line);
}
template <class T, bool isSetMask = true>
ASC_INLINE void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                          int32_t mask, int32_t repeatTimes, int32_t srcRepStride, asc::At at = ASC_HERE) {
    ASC_TAKES("ReduceSum", T, half, float);
    asc_reduce(ASC_REDUCE_SUM, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), 0,
               static_cast<uint32_t>(srcRepStride),
               asc_detail::masked<isSetMask>(static_cast<uint64_t>(mask), static_cast<uint32_t>(repeatTimes),
                                             asc_detail::strides(1, 8, 1, static_cast<uint16_t>(srcRepStride))),
               at.line);
}
template <class T, bool isSetMask = true>
ASC_INLINE void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                          const uint64_t mask[], int32_t repeatTimes, int32_t srcRepStride, asc::At at = ASC_HERE) {
    ASC_TAKES("ReduceSum", T, half, float);
    asc_reduce(ASC_REDUCE_SUM, asc::dtype<T>, dst.asc_where(), src.asc_where(), work.asc_where(), 0,
               static_cast<uint32_t>(srcRepStride),
               asc_detail::masked<isSetMask>(mask, static_cast<uint32_t>(repeatTimes),
                                             asc_detail::strides(1, 8, 1, static_cast<uint16_t>(srcRepStride))),
               at.line);
}

namespace asc_detail {
template <bool set, class T, class Mask>
ASC_INLINE void reduce_parts(uint32_t op, uint32_t unit, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                             const Mask &mask, int32_t repeat, int32_t dst_repeat, int32_t src_block,
                             int32_t src_repeat, ReduceOrder order, asc::At at) {
    const asc_walk steps = asc_detail::strides(1, static_cast<uint16_t>(dst_repeat), static_cast<uint16_t>(src_block),
                                               static_cast<uint16_t>(src_repeat));
    if constexpr (asc::integral<Mask>)
        asc_reduce_parts(op, unit, asc::dtype<T>, dst.asc_where(), src.asc_where(), static_cast<uint32_t>(order),
                         asc_detail::masked<set>(static_cast<uint64_t>(mask), static_cast<uint32_t>(repeat), steps),
                         at.line);
    else
        asc_reduce_parts(op, unit, asc::dtype<T>, dst.asc_where(), src.asc_where(), static_cast<uint32_t>(order),
                         asc_detail::masked<set>(mask, static_cast<uint32_t>(repeat), steps), at.line);
}
}  // namespace asc_detail

// One result for each repeat of 256 bytes. dstRepStride counts elements, or pairs where value and index are written.
#define ASC_WHOLE_REDUCE(name, op)                                                                                     \
    template <class T, bool isSetMask = true, class Mask>                                                              \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask, int32_t repeatTimes,  \
                         int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,                             \
                         ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, asc::At at = ASC_HERE) {                  \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::reduce_parts<isSetMask>(op, ASC_PER_REPEAT, dst, src, mask, repeatTimes, dstRepStride,             \
                                            srcBlkStride, srcRepStride, order, at);                                    \
    }
ASC_WHOLE_REDUCE(WholeReduceMax, ASC_REDUCE_MAX)
ASC_WHOLE_REDUCE(WholeReduceMin, ASC_REDUCE_MIN)
#undef ASC_WHOLE_REDUCE

template <class T, bool isSetMask = true, class Mask>
ASC_INLINE void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask,
                               int32_t repeatTimes, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                               asc::At at = ASC_HERE) {
    ASC_TAKES("WholeReduceSum", T, half, float);
    asc_detail::reduce_parts<isSetMask>(ASC_REDUCE_SUM, ASC_PER_REPEAT, dst, src, mask, repeatTimes, dstRepStride,
                                        srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at);
}

// One result for each block of 32 bytes (BlockReduce) or each pair of elements (PairReduceSum).
#define ASC_PART_REDUCE(name, op, unit)                                                                                \
    template <class T, bool isSetMask = true, class Mask>                                                              \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t repeatTimes, const Mask &mask,  \
                         int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, asc::At at = ASC_HERE) {    \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::reduce_parts<isSetMask>(op, unit, dst, src, mask, repeatTimes, dstRepStride, srcBlkStride,         \
                                            srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at);                          \
    }
ASC_PART_REDUCE(BlockReduceSum, ASC_REDUCE_SUM, ASC_PER_BLOCK)
ASC_PART_REDUCE(BlockReduceMax, ASC_REDUCE_MAX, ASC_PER_BLOCK)
ASC_PART_REDUCE(BlockReduceMin, ASC_REDUCE_MIN, ASC_PER_BLOCK)
ASC_PART_REDUCE(PairReduceSum, ASC_REDUCE_SUM, ASC_PER_PAIR)
ASC_PART_REDUCE(ReducePairElem, ASC_REDUCE_SUM, ASC_PER_PAIR)
#undef ASC_PART_REDUCE

template <class T, bool isSetMask = true>
ASC_INLINE void RepeatReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t repeatTimes, int32_t mask,
                                int32_t dstBlkStride, int32_t srcBlkStride, int32_t dstRepStride, int32_t srcRepStride,
                                asc::At at = ASC_HERE) {
    ASC_TAKES("RepeatReduceSum", T, half, float);
    (void)dstBlkStride;  // one result a repeat: there is no second block
    asc_detail::reduce_parts<isSetMask>(ASC_REDUCE_SUM, ASC_PER_REPEAT, dst, src, mask, repeatTimes, dstRepStride,
                                        srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at);
}

// Names of CANN 9.
template <ReduceType type, class T, bool isSetMask = true, class Mask>
ASC_INLINE void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask,
                             int32_t repeatTimes, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                             ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, asc::At at = ASC_HERE) {
    ASC_TAKES("ReduceRepeat", T, half, float);
    asc_detail::reduce_parts<isSetMask>(static_cast<uint32_t>(type), ASC_PER_REPEAT, dst, src, mask, repeatTimes,
                                        dstRepStride, srcBlkStride, srcRepStride,
                                        type == ReduceType::SUM ? ReduceOrder::ORDER_ONLY_VALUE : order, at);
}
template <ReduceType type, class T, bool isSetMask = true, class Mask>
ASC_INLINE void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t repeatTimes,
                                const Mask &mask, int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride,
                                asc::At at = ASC_HERE) {
    ASC_TAKES("ReduceDataBlock", T, half, float);
    asc_detail::reduce_parts<isSetMask>(static_cast<uint32_t>(type), ASC_PER_BLOCK, dst, src, mask, repeatTimes,
                                        dstRepStride, srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, at);
}

}  // namespace AscendC

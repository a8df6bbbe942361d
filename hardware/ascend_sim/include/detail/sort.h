// Sorting: pairs of value and index, 8 bytes each, the largest first.
#pragma once
#include "tile.h"

namespace AscendC {

template <class T>
struct MrgSortSrcList {
    LocalTensor<T> src1, src2, src3, src4;
    MrgSortSrcList() = default;
    ASC_UNCOUNTED MrgSortSrcList(const LocalTensor<T> &first, const LocalTensor<T> &second, const LocalTensor<T> &third,
                                 const LocalTensor<T> &fourth)
        : src1(first), src2(second), src3(third), src4(fourth) {}
};

struct MrgSort4Info {
    uint16_t elementLengths[4] = {};
    bool ifExhaustedSuspension = false;
    uint16_t validBit = 0, repeatTimes = 1;
    MrgSort4Info() = default;
    ASC_UNCOUNTED MrgSort4Info(const uint16_t lengths[4], bool suspends, uint16_t valid, uint16_t repeat)
        : elementLengths{lengths[0], lengths[1], lengths[2], lengths[3]}, ifExhaustedSuspension(suspends),
          validBit(valid), repeatTimes(repeat) {}
};

namespace asc_detail {
template <class T>
ASC_INLINE void merge(const LocalTensor<T> &dst, const MrgSortSrcList<T> &lists, const uint16_t lengths[4],
                      uint16_t valid, int32_t repeat, bool suspends, asc::At at) {
    ASC_TAKES("MrgSort", T, half, float);
    // 0b11, 0b111 or 0b1111: the first two to four lists.
    const uint32_t n = valid == 3 ? 2u : valid == 7 ? 3u : valid == 15 ? 4u : 0u;
    asc_merge_sorted(asc::dtype<T>, dst.asc_where(),
                     {{lists.src1.asc_where(), lists.src2.asc_where(), lists.src3.asc_where(), lists.src4.asc_where()},
                      {lengths[0], lengths[1], lengths[2], lengths[3]},
                      n,
                      static_cast<uint32_t>(repeat),
                      suspends},
                     at.line);
}
}  // namespace asc_detail

// Merges two to four sorted lists; sortedNum is the number of pairs taken from each.
template <class T, bool isExhaustedSuspension = false>
ASC_INLINE void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &sortList,
                        const uint16_t elementCountList[4], uint32_t sortedNum[4], uint16_t validBit,
                        const int32_t repeatTimes, asc::At at = ASC_HERE) {
    asc_detail::merge(dst, sortList, elementCountList, validBit, repeatTimes, isExhaustedSuspension, at);
    if constexpr (isExhaustedSuspension) {
        const uint64_t counts = asc_merge_counts(at.line);
        for (uint32_t i = 0; i < 4; ++i) sortedNum[i] = static_cast<uint32_t>(counts >> 16 * i & 0xffff);
    } else {
        for (uint32_t i = 0; i < 4; ++i) sortedNum[i] = validBit >> i & 1 ? elementCountList[i] : 0;
    }
}
template <class T>
ASC_INLINE void MrgSort(const LocalTensor<T> &dst, const MrgSortSrcList<T> &src, const MrgSort4Info &params,
                        asc::At at = ASC_HERE) {
    asc_detail::merge(dst, src, params.elementLengths, params.validBit, params.repeatTimes,
                      params.ifExhaustedSuspension, at);
}
ASC_INLINE void GetMrgSortResult(uint16_t &mrgSortList1, uint16_t &mrgSortList2, uint16_t &mrgSortList3,
                                 uint16_t &mrgSortList4, asc::At at = ASC_HERE) {
    const uint64_t counts = asc_merge_counts(at.line);
    mrgSortList1 = static_cast<uint16_t>(counts), mrgSortList2 = static_cast<uint16_t>(counts >> 16);
    mrgSortList3 = static_cast<uint16_t>(counts >> 32), mrgSortList4 = static_cast<uint16_t>(counts >> 48);
}

// The number of elements of T that `elemCount` pairs take.
template <class T> inline constexpr uint32_t GetSortLen(const uint32_t elemCount) { return elemCount * 8 / sizeof(T); }
template <class T> inline constexpr uint32_t GetSortOffset(const uint32_t elemOffset) {
    return elemOffset * 8 / sizeof(T);
}

// Atlas A2 sorts elements directly: no preparation is needed.
template <class T> ASC_INLINE void Concat(LocalTensor<T> &concat, const LocalTensor<T> &src, const LocalTensor<T> &tmp,
                                          const int32_t repeatTime) {
    ASC_TAKES("Concat", T, half, float);
    (void)tmp, (void)repeatTime;
    concat = src;
}

// Sorts 32 * repeatTime elements into pairs: each group of 32, or (isFullSort) all together.
template <class T, bool isFullSort>
ASC_INLINE void Sort(const LocalTensor<T> &dst, const LocalTensor<T> &concat, const LocalTensor<uint32_t> &index,
                     LocalTensor<T> &tmp, const int32_t repeatTime, asc::At at = ASC_HERE) {
    ASC_TAKES("Sort", T, half, float);
    asc_detail::Tile tile(dst.asc_where(), concat.asc_where(), tmp.asc_where());
    tile.src1 = index.asc_where();
    const uint32_t rows = static_cast<uint32_t>(repeatTime);
    asc_detail::run_tile<T>(ASC_SORT, tile, {rows, 32, rows, 32, 1, isFullSort}, 0, at);
}

// Splits 32 * repeatTime pairs into values and indices.
template <class T>
ASC_INLINE void Extract(const LocalTensor<T> &dstValue, const LocalTensor<uint32_t> &dstIndex,
                        const LocalTensor<T> &sorted, const int32_t repeatTime, asc::At at = ASC_HERE) {
    ASC_TAKES("Extract", T, half, float);
    asc_detail::Tile tile(dstValue.asc_where(), sorted.asc_where(), asc_detail::nothing);
    tile.dst1 = dstIndex.asc_where();
    const uint32_t rows = static_cast<uint32_t>(repeatTime);
    asc_detail::run_tile<T>(ASC_EXTRACT, tile, {rows, 32, rows, 32, 1, 0}, 0, at);
}

}  // namespace AscendC

// For the host function: temporary space of the library functions, and their tilings.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "../detail/tiling.h"
#include "platform/platform_ascendc.h"

namespace ge {

// The dimensions of a tensor, at most eight.
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) {
        for (const int64_t size : sizes)
            if (count_ < 8) sizes_[count_++] = size;
    }
    uint32_t GetDimNum() const { return count_; }
    int64_t GetDim(uint32_t i) const { return i < count_ ? sizes_[i] : 0; }
    int64_t GetShapeSize() const {
        int64_t all = 1;
        for (uint32_t i = 0; i < count_; ++i) all *= sizes_[i];
        return all;
    }

private:
    int64_t sizes_[8] = {};
    uint32_t count_ = 0;
};

}  // namespace ge

namespace optiling {
using ::GroupNormTiling;
using ::LayerNormTiling;
using ::LogSoftMaxTiling;
using ::PadTiling;
using ::RmsNormTiling;
using ::SoftMaxTiling;
using ::TopkTiling;
using ::UnPadTiling;
}  // namespace optiling

namespace AscendC {

namespace asc_detail {
constexpr uint32_t tiling_repeat = 256;
// At least one row in float plus a repeat; at most all rows.
inline uint32_t row_bytes(const ge::Shape &shape) {
    const uint32_t columns = static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
    return (columns * 4 + tiling_repeat - 1) / tiling_repeat * tiling_repeat + tiling_repeat;
}
inline uint32_t all_bytes(const ge::Shape &shape) {
    const uint32_t least = row_bytes(shape), all = static_cast<uint32_t>(shape.GetShapeSize()) * 4 + tiling_repeat;
    return all > least ? all : least;
}
inline uint32_t rows_of(const ge::Shape &shape) {
    const int64_t columns = shape.GetDim(shape.GetDimNum() - 1);
    return columns ? static_cast<uint32_t>(shape.GetShapeSize() / columns) : 0;
}
}  // namespace asc_detail

// Element-wise functions: a number of repeats of float, twice as many for 16-bit data.
#define ASC_TMP_SIZE(name, repeats)                                                                                    \
    inline void Get##name##MaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, const bool isReuseSource, \
                                         uint32_t &maxValue, uint32_t &minValue) {                                     \
        (void)isReuseSource;                                                                                           \
        minValue = repeats * asc_detail::tiling_repeat * (typeSize == 2 ? 2 : 1);                                      \
        const uint32_t all = repeats * static_cast<uint32_t>(srcShape.GetShapeSize()) * 4;                             \
        maxValue = all > minValue ? all : minValue;                                                                    \
    }
// clang-format off
ASC_TMP_SIZE(Tanh, 1) ASC_TMP_SIZE(Sigmoid, 1) ASC_TMP_SIZE(Erf, 3) ASC_TMP_SIZE(Erfc, 7) ASC_TMP_SIZE(Sin, 3) ASC_TMP_SIZE(Cos, 3)
ASC_TMP_SIZE(Tan, 4) ASC_TMP_SIZE(Asin, 2) ASC_TMP_SIZE(Acos, 2) ASC_TMP_SIZE(Atan, 5) ASC_TMP_SIZE(Sinh, 2) ASC_TMP_SIZE(Cosh, 2)
ASC_TMP_SIZE(Asinh, 3) ASC_TMP_SIZE(Acosh, 1) ASC_TMP_SIZE(Atanh, 1) ASC_TMP_SIZE(Floor, 1) ASC_TMP_SIZE(Ceil, 1) ASC_TMP_SIZE(Round, 1)
ASC_TMP_SIZE(Trunc, 1) ASC_TMP_SIZE(Frac, 1) ASC_TMP_SIZE(Sign, 3) ASC_TMP_SIZE(Lgamma, 8) ASC_TMP_SIZE(Digamma, 7) ASC_TMP_SIZE(Exp, 3)
ASC_TMP_SIZE(Fmod, 2) ASC_TMP_SIZE(Xor, 1) ASC_TMP_SIZE(ClampMax, 1) ASC_TMP_SIZE(ClampMin, 1) ASC_TMP_SIZE(Power, 6) ASC_TMP_SIZE(Gelu, 3)
// clang-format on
#undef ASC_TMP_SIZE

// Row-wise functions.
inline uint32_t GetSoftMaxMinTmpSize(const ge::Shape &srcShape, const uint32_t dataTypeSize, const bool isReuseSource) {
    (void)dataTypeSize, (void)isReuseSource;
    return asc_detail::row_bytes(srcShape);
}
inline uint32_t GetSoftMaxMaxTmpSize(const ge::Shape &srcShape, const uint32_t dataTypeSize, const bool isReuseSource) {
    (void)dataTypeSize, (void)isReuseSource;
    return asc_detail::all_bytes(srcShape);
}
inline void SoftMaxTilingFunc(const ge::Shape &srcShape, const uint32_t dataTypeSize, const uint32_t localWorkSpaceSize,
                              SoftMaxTiling &tiling) {
    (void)dataTypeSize, (void)localWorkSpaceSize;
    tiling.srcM = asc_detail::rows_of(srcShape);
    tiling.srcK = static_cast<uint32_t>(srcShape.GetDim(srcShape.GetDimNum() - 1));
    tiling.srcSize = tiling.srcM * tiling.srcK;
}
inline void LogSoftMaxTilingFunc(const ge::Shape &srcShape, const uint32_t dataTypeSize,
                                 const uint32_t localWorkSpaceSize, LogSoftMaxTiling &tiling) {
    SoftMaxTilingFunc(srcShape, dataTypeSize, localWorkSpaceSize, tiling);
}
inline void SoftMaxFlashTilingFunc(const ge::Shape &srcShape, const uint32_t dataTypeSize,
                                   const uint32_t localWorkSpaceSize, SoftMaxTiling &tiling,
                                   const bool isUpdate = false) {
    (void)isUpdate;
    SoftMaxTilingFunc(srcShape, dataTypeSize, localWorkSpaceSize, tiling);
}
inline void SoftMaxFlashV2TilingFunc(const ge::Shape &srcShape, const uint32_t dataTypeSize1,
                                     const uint32_t dataTypeSize2, const uint32_t localWorkSpaceSize,
                                     SoftMaxTiling &tiling, const bool isUpdate, const bool isBasicBlock = false,
                                     const bool isFlashOutputBrc = false) {
    (void)dataTypeSize2, (void)isUpdate, (void)isBasicBlock, (void)isFlashOutputBrc;
    SoftMaxTilingFunc(srcShape, dataTypeSize1, localWorkSpaceSize, tiling);
}

inline void GetSumMaxMinTmpSize(const uint32_t n, const uint32_t typeSize, const bool isReuseSource, uint32_t &maxValue,
                                uint32_t &minValue) {
    (void)n, (void)typeSize, (void)isReuseSource;
    maxValue = minValue = asc_detail::tiling_repeat;
}
inline void GetMeanMaxMinTmpSize(const uint32_t n, const uint32_t typeSize, const uint32_t accTypeSize,
                                 const bool isReuseSource, uint32_t &maxValue, uint32_t &minValue) {
    (void)accTypeSize;
    GetSumMaxMinTmpSize(n, typeSize, isReuseSource, maxValue, minValue);
}
inline void GetCumSumMaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, const bool isLastAxis,
                                   const bool isReuseSource, uint32_t &maxValue, uint32_t &minValue) {
    (void)typeSize, (void)isLastAxis, (void)isReuseSource;
    minValue = asc_detail::row_bytes(srcShape), maxValue = asc_detail::all_bytes(srcShape);
}
inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const ge::Shape &srcShape,
                                      const ge::Shape &dstShape, const uint32_t typeSize, const bool isReuseSource,
                                      uint32_t &maxValue, uint32_t &minValue) {
    (void)srcShape, (void)dstShape, (void)typeSize, (void)isReuseSource;
    maxValue = minValue = 0;
}

inline void GetLayerNormMaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, const bool isReuseSource,
                                      uint32_t &maxValue, uint32_t &minValue) {
    (void)typeSize, (void)isReuseSource;
    minValue = asc_detail::row_bytes(srcShape), maxValue = asc_detail::all_bytes(srcShape);
}
// (b, s, h, h without padding).
inline void GetLayerNormNDTilingInfo(const ge::Shape &srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                                     const bool isReuseSource, LayerNormTiling &tiling) {
    (void)stackBufferSize, (void)typeSize, (void)isReuseSource;
    tiling.bLength = static_cast<uint32_t>(srcShape.GetDim(0)),
    tiling.sLength = static_cast<uint32_t>(srcShape.GetDim(1));
    tiling.hLength = static_cast<uint32_t>(srcShape.GetDim(2)),
    tiling.originalHLength = static_cast<uint32_t>(srcShape.GetDimNum() > 3 ? srcShape.GetDim(3) : srcShape.GetDim(2));
}
inline bool GetRmsNormMaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                    uint32_t &minValue, const bool isBasicBlock = false) {
    (void)typeSize, (void)isBasicBlock;
    minValue = asc_detail::row_bytes(srcShape), maxValue = asc_detail::all_bytes(srcShape);
    return true;
}
inline bool GetRmsNormTilingInfo(const ge::Shape &srcShape, const ge::Shape &originSrcShape,
                                 const uint32_t stackBufferByteSize, const uint32_t typeSize, RmsNormTiling &tiling,
                                 const bool isBasicBlock = false) {
    (void)isBasicBlock;
    GetLayerNormNDTilingInfo(srcShape, stackBufferByteSize, typeSize, false, tiling);
    tiling.originalHLength = static_cast<uint32_t>(originSrcShape.GetDim(2));
    return tiling.bLength != 0 && tiling.sLength != 0 && tiling.hLength != 0;
}
inline void GetGroupNormMaxMinTmpSize(const ge::Shape &inputShape, const uint32_t typeSize, const bool isReuseSource,
                                      const uint32_t groupNum, uint32_t &maxValue, uint32_t &minValue) {
    (void)typeSize, (void)isReuseSource;
    const int64_t n = inputShape.GetDim(0);
    const int64_t rows = n * groupNum;
    const ge::Shape groups{rows, rows > 0 ? inputShape.GetShapeSize() / rows : 0};
    minValue = asc_detail::row_bytes(groups), maxValue = asc_detail::all_bytes(groups);
}
inline void GetGroupNormNDTilingInfo(const ge::Shape &inputShape, const uint32_t stackBufferSize,
                                     const uint32_t typeSize, const bool isReuseSource, const uint32_t groupNum,
                                     GroupNormTiling &tiling) {
    (void)stackBufferSize, (void)typeSize, (void)isReuseSource;
    tiling.n = static_cast<uint32_t>(inputShape.GetDim(0)), tiling.c = static_cast<uint32_t>(inputShape.GetDim(1)),
    tiling.g = groupNum;
    tiling.hw = static_cast<uint32_t>(inputShape.GetDim(2) * (inputShape.GetDimNum() > 3 ? inputShape.GetDim(3) : 1));
}

inline void GetPadMaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, uint32_t &maxValue,
                                uint32_t &minValue) {
    (void)srcShape, (void)typeSize;
    maxValue = minValue = 0;
}
inline void GetUnPadMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const ge::Shape &srcShape,
                                  const uint32_t typeSize, uint32_t &maxValue, uint32_t &minValue) {
    GetPadMaxMinTmpSize(srcShape, typeSize, maxValue, minValue);
}
inline void PadTilingFunc(const ge::Shape srcShape, const ge::Shape oriSrcShape, const uint32_t stackBufferSize,
                          const uint32_t typeSize, PadTiling &tiling) {
    (void)stackBufferSize, (void)typeSize;
    tiling.srcHeight = static_cast<uint32_t>(srcShape.GetDim(0)),
    tiling.srcWidth = static_cast<uint32_t>(srcShape.GetDim(1));
    tiling.srcOriWidth = static_cast<uint32_t>(oriSrcShape.GetDim(1));
}
inline void UnPadTilingFunc(const ge::Shape srcShape, const uint32_t stackBufferSize, const uint32_t typeSize,
                            UnPadTiling &tiling) {
    PadTilingFunc(srcShape, srcShape, stackBufferSize, typeSize, tiling);
}

inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC &, const uint32_t elemCount,
                                 const uint32_t dataTypeSize) {
    (void)elemCount, (void)dataTypeSize;
    return 0;
}
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC &, const uint32_t elemCount,
                               const uint32_t dataTypeSize) {
    (void)dataTypeSize;
    return elemCount * 8;
}
inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, const int32_t inner, const int32_t outter,
                                 const bool isReuseSource, const bool isInitIndex, const int32_t mode,
                                 const bool isLargest, const uint32_t dataTypeSize, uint32_t &maxValue,
                                 uint32_t &minValue) {
    (void)outter, (void)isReuseSource, (void)isInitIndex, (void)mode, (void)isLargest, (void)dataTypeSize;
    maxValue = minValue = 4 * ((static_cast<uint32_t>(inner) * 4 + asc_detail::tiling_repeat - 1) /
                               asc_detail::tiling_repeat * asc_detail::tiling_repeat);
    return inner > 0;
}
inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC &, const int32_t inner, const int32_t outter,
                           const int32_t k, const uint32_t dataTypeSize, const bool isInitIndex, const int32_t mode,
                           const bool isLargest, TopkTiling &tiling) {
    (void)dataTypeSize, (void)isInitIndex, (void)mode, (void)isLargest;
    tiling.allDataSize = inner * outter, tiling.innerDataSize = inner, tiling.sortRepeat = inner / 32;
    return inner % 32 == 0 && k > 0 && k <= inner;
}

#define ASC_QUANT_TMP_SIZE(name)                                                                                       \
    inline void Get##name##MaxMinTmpSize(const ge::Shape &srcShape, const uint32_t typeSize, uint32_t &maxValue,       \
                                         uint32_t &minValue) {                                                         \
        (void)typeSize;                                                                                                \
        minValue = asc_detail::tiling_repeat, maxValue = asc_detail::all_bytes(srcShape);                              \
    }
// clang-format off
ASC_QUANT_TMP_SIZE(AscendQuant) ASC_QUANT_TMP_SIZE(AscendDequant)
// clang-format on
#undef ASC_QUANT_TMP_SIZE

}  // namespace AscendC

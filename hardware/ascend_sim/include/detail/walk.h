// The three call forms of all vector functions: a count, a mask as a number, a mask as bits.
#pragma once
#include "tensor.h"

namespace AscendC {

// Strides are in blocks of 32 bytes.
struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
    bool halfBlock = false;
    constexpr UnaryRepeatParams() = default;
    constexpr UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat,
                                bool half_block = false)
        : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat), srcRepStride(src_repeat),
          halfBlock(half_block) {}
};

struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8,
            src1RepStride = 8;
    constexpr BinaryRepeatParams() = default;
    constexpr BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block, uint8_t dst_repeat,
                                 uint8_t src0_repeat, uint8_t src1_repeat)
        : dstBlkStride(dst_block), src0BlkStride(src0_block), src1BlkStride(src1_block), dstRepStride(dst_repeat),
          src0RepStride(src0_repeat), src1RepStride(src1_repeat) {}
};

struct CopyRepeatParams {
    uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
    constexpr CopyRepeatParams() = default;
    constexpr CopyRepeatParams(uint16_t dst, uint16_t src, uint16_t dst_repeat, uint16_t src_repeat)
        : dstStride(dst), srcStride(src), dstRepeatSize(dst_repeat), srcRepeatSize(src_repeat) {}
};

struct BrcbRepeatParams {
    uint16_t dstBlkStride = 1, dstRepStride = 8;
    constexpr BrcbRepeatParams() = default;
    constexpr BrcbRepeatParams(uint16_t block, uint16_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};

struct GatherRepeatParams {
    uint8_t dstBlkStride = 1;
    uint16_t dstRepStride = 8;
    constexpr GatherRepeatParams() = default;
    constexpr GatherRepeatParams(uint8_t block, uint16_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};

namespace asc_detail {

ASC_INLINE asc_walk count(int64_t elements) {
    // A negative count is passed on as a huge one, which the device rejects.
    return {{0, 0}, static_cast<uint32_t>(elements), 0, ASC_COUNT, 1, 1, 1, 8, 8, 8};
}

ASC_INLINE uint16_t times(asc::Repeat repeat) { return static_cast<uint16_t>(asc_least(repeat.times, 65535)); }

// The lowest `n` bits; a mask too large for a repeat is reported by its number.
ASC_INLINE uint64_t low_bits(uint64_t n) { return ~uint64_t{0} >> (63 & (64 - n)) & -static_cast<uint64_t>(n != 0); }

template <bool set, class Mask> ASC_INLINE asc_walk masked(const Mask &mask, asc::Repeat repeat, asc_walk strides) {
    static_assert(asc::plain<Mask>, "a mask is a number or an array of uint64_t");
    if constexpr (asc::pointer<Mask> || asc::array<Mask>) {
        const uint64_t *bits = mask;
        strides.mask[0] = bits[0];
        strides.mask[1] = bits[1];
    } else {
        const uint64_t number = mask;
        strides.mask[0] = low_bits(asc_least(number, 64));
        strides.mask[1] = low_bits(asc_least(number, 128) - asc_least(number, 64));
        strides.count = static_cast<uint32_t>(asc_least(number, UINT32_MAX));
    }
    strides.repeat = times(repeat);
    strides.form = set ? ASC_MASK : ASC_MASK_REGISTER;
    return strides;
}

ASC_INLINE asc_walk strides(const UnaryRepeatParams &p) {
    return {{0, 0}, 0, 0, 0, p.dstBlkStride, p.srcBlkStride, 1, p.dstRepStride, p.srcRepStride, 8};
}
ASC_INLINE asc_walk strides(const BinaryRepeatParams &p) {
    return {{0, 0},         0, 0, 0, p.dstBlkStride, p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,
            p.src1RepStride};
}
ASC_INLINE asc_walk strides(uint16_t dst_block, uint16_t dst_repeat, uint16_t src_block = 1, uint16_t src_repeat = 8) {
    return {{0, 0}, 0, 0, 0, dst_block, src_block, 1, dst_repeat, src_repeat, 8};
}

}  // namespace asc_detail
}  // namespace AscendC

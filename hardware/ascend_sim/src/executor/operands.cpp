#include "operands.h"

namespace sim {

uint64_t View::extent(const Steps &steps) const {
    if (steps.elements == 0 || steps.repeats == 0) return 0;
    if (steps.contiguous) return steps.elements * element;
    // A short last repeat may end before a full one would.
    uint64_t end = 0;
    for (uint32_t back = 1; back <= std::min(steps.repeats, 2u); ++back) {
        const uint32_t repeat = steps.repeats - back, lanes = steps.lanes_in(repeat);
        if (lanes == 0) continue;
        const uint32_t last_block = (lanes - 1) / per_block();
        const uint64_t row = static_cast<uint64_t>(repeat) * repeat_stride * 32;
        const uint64_t tail =
            row + static_cast<uint64_t>(last_block) * block_stride * 32 + ((lanes - 1) % per_block() + 1) * element;
        end = std::max(end, tail);
        if (block_stride == 0 && last_block > 0) end = std::max<uint64_t>(end, row + 32);
    }
    return end;
}

bool View::dense(const Steps &steps) const {
    if (steps.contiguous) return true;
    if (block_stride != 1 || !steps.solid()) return false;
    if (steps.repeats == 1) return true;
    if (repeat_stride * 32 != steps.lanes * element) return false;
    return steps.counted || steps.lanes_in(0) == steps.lanes;
}

void gather_lanes(const View &view, const uint8_t *memory, uint32_t repeat, uint32_t lanes, uint8_t *row) {
    for (uint32_t lane = 0; lane < lanes; lane += view.per_block()) {
        const uint32_t n = std::min(view.per_block(), lanes - lane) * view.element;
        std::memcpy(row + lane * view.element, memory + view.addr + view.offset(repeat, lane), n);
    }
}

void scatter_lanes(const View &view, uint8_t *memory, uint32_t repeat, uint32_t lanes, const Steps &steps,
                   const uint8_t *row) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        if (!steps.active(lane)) continue;
        std::memcpy(memory + view.addr + view.offset(repeat, lane), row + lane * view.element, view.element);
    }
}

namespace {
constexpr uint32_t most_blocks = 32;  // of one repeat of an operand

// Blocks that one repeat of an operand spans, or those of them that hold an active lane.
uint32_t blocks_of(const View &view, const Steps &steps, uint32_t repeat, bool active, uint32_t *blocks) {
    const uint32_t lanes = steps.lanes_in(repeat);
    const uint64_t ones = (1ull << view.per_block()) - 1;
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < lanes; lane += view.per_block()) {
        if (active && !steps.counted && !(steps.mask[lane / 64] >> (lane % 64) & ones)) continue;
        blocks[n++] = static_cast<uint32_t>((view.addr + view.offset(repeat, lane)) / block_bytes);
    }
    return n;
}

bool share_a_block(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb) {
    for (uint32_t i = 0; i < na; ++i) {
        for (uint32_t j = 0; j < nb; ++j) {
            if (a[i] == b[j]) return true;
        }
    }
    return false;
}

// Whether both operands have the same elements in a repeat.
bool same_in(const View &dst, const View &src, uint32_t repeat) {
    return dst.addr + dst.offset(repeat, 0) == src.addr + src.offset(repeat, 0) &&
           dst.block_stride == src.block_stride && dst.element == src.element;
}

// Whether a repeat writes a block that a later one reads.
bool reads_an_earlier_repeat(const View &dst, const View &src, const Steps &steps) {
    if (steps.repeats < 2) return false;
    if (dst.repeat_stride == src.repeat_stride) {
        // The next repeat's source begins behind what this one writes, and so do all later ones.
        const uint32_t lanes = steps.lanes_in(0);
        const uint64_t end = dst.addr + (lanes ? dst.offset(0, lanes - 1) : 0);
        if (src.addr + src.offset(1, 0) > end) return false;
    }
    WrittenBlocks written;
    uint32_t blocks[most_blocks];
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t read = blocks_of(src, steps, repeat, true, blocks);
        for (uint32_t i = 0; i < read; ++i) {
            if (written.has(blocks[i])) return true;
        }
        const uint32_t wrote = blocks_of(dst, steps, repeat, true, blocks);
        for (uint32_t i = 0; i < wrote; ++i) written.add(blocks[i]);
    }
    return false;
}
}  // namespace

Overlap overlap_of(const View &dst, const View &src, const Steps &steps, bool accumulates) {
    if (steps.elements == 0) return Overlap::Allowed;
    const uint64_t d_end = dst.addr + dst.extent(steps), s_end = src.addr + src.extent(steps);
    if (dst.addr >= s_end || src.addr >= d_end) return Overlap::Allowed;
    if (steps.contiguous) {
        if (dst.element != src.element) return Overlap::Partial;
        const bool repeats_apart = src.addr > dst.addr && src.addr - dst.addr >= 256;  // shifts down by whole repeats
        return dst.addr == src.addr || repeats_apart ? Overlap::Allowed : Overlap::Partial;
    }
    const bool stays = dst.repeat_stride == 0 && src.repeat_stride == 0;
    if (accumulates && stays && same_in(dst, src, 0)) return Overlap::Allowed;
    uint32_t written[most_blocks], read[most_blocks];
    // With equal strides each repeat is as the first one.
    const uint32_t distinct = dst.repeat_stride == src.repeat_stride ? 1 : steps.repeats;
    for (uint32_t repeat = 0; repeat < distinct; ++repeat) {
        if (same_in(dst, src, repeat)) continue;
        const uint32_t n = blocks_of(dst, steps, repeat, false, written),
                       m = blocks_of(src, steps, repeat, false, read);
        if (share_a_block(written, n, read, m)) return Overlap::Partial;
    }
    return reads_an_earlier_repeat(dst, src, steps) ? Overlap::EarlierRepeat : Overlap::Allowed;
}

void combine_validity(uint8_t *dst, uint32_t dst_element, const uint8_t *src, uint32_t src_element, size_t n,
                      bool first) {
    for (size_t i = 0; i < n; ++i) {
        bool good = !std::memchr(src + i * src_element, 0, src_element);
        if (!first) good = good && dst[i * dst_element];
        std::memset(dst + i * dst_element, good, dst_element);
    }
}

}  // namespace sim

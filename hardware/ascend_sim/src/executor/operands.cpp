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
// Blocks that one repeat of an operand touches; at most 32.
uint32_t blocks_of(const View &view, const Steps &steps, uint32_t repeat, uint32_t *blocks) {
    const uint32_t lanes = steps.lanes_in(repeat);
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < lanes; lane += view.per_block()) {
        blocks[n++] = static_cast<uint32_t>((view.addr + view.offset(repeat, lane)) / 32);
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
}  // namespace

bool overlaps_badly(const View &dst, const View &src, const Steps &steps, bool accumulates) {
    if (steps.elements == 0) return false;
    const uint64_t d_end = dst.addr + dst.extent(steps), s_end = src.addr + src.extent(steps);
    if (dst.addr >= s_end || src.addr >= d_end) return false;
    if (steps.contiguous) {
        if (dst.element != src.element) return true;
        const bool repeats_apart = src.addr > dst.addr && src.addr - dst.addr >= 256;  // shifts down by whole repeats
        return dst.addr != src.addr && !repeats_apart;
    }
    const bool same = dst.addr == src.addr && dst.element == src.element && dst.block_stride == src.block_stride;
    if (same && dst.repeat_stride == src.repeat_stride && (dst.repeat_stride != 0 || steps.repeats == 1 || accumulates))
        return false;
    uint32_t now[64], later[64];
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t n = blocks_of(dst, steps, repeat, now);
        const bool exact = dst.addr + dst.offset(repeat, 0) == src.addr + src.offset(repeat, 0) &&
                           dst.block_stride == src.block_stride && dst.element == src.element;
        const uint32_t m = blocks_of(src, steps, repeat, later);
        if (!exact && share_a_block(now, n, later, m)) return true;
        if (repeat + 1 == steps.repeats || accumulates) continue;
        const uint32_t k = blocks_of(src, steps, repeat + 1, later);
        if (share_a_block(now, n, later, k)) return true;
    }
    return false;
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

// Iteration of vector instructions over their operands: repeats of 256 bytes, blocks of 32 bytes, masks and strides.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "../../include/abi.h"
#include "protocol/instr.h"
#include "local_memory.h"

namespace sim {

constexpr uint32_t block_bytes = 32;  // of UB

constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
constexpr uint64_t divide_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

// Most of these blocks that lie in one of the sixteen bank groups of UB.
template <class Iterator>
uint32_t fullest_bank_group(Iterator block, Iterator end) {
    uint32_t groups[16] = {};
    for (; block != end; ++block) ++groups[*block % 16];
    return *std::max_element(std::begin(groups), std::end(groups));
}

// The active elements, resolved from the call and the mask register.
struct Steps {
    uint32_t repeats = 0;
    uint32_t lanes = 0;       // elements of a full repeat
    uint64_t elements = 0;    // active elements in all repeats
    bool contiguous = false;  // the first `elements` from the start, ignoring strides
    bool counted = false;     // the first `elements` in order of lanes; otherwise `mask` in each repeat
    uint64_t mask[2] = {0, 0};

    // Lanes of a repeat up to the last active one.
    uint32_t lanes_in(uint32_t repeat) const {
        if (counted)
            return static_cast<uint32_t>(std::min<uint64_t>(lanes, elements - static_cast<uint64_t>(repeat) * lanes));
        return mask[1] ? 128 - static_cast<uint32_t>(__builtin_clzll(mask[1]))
                       : (mask[0] ? 64 - static_cast<uint32_t>(__builtin_clzll(mask[0])) : 0);
    }
    bool active(uint32_t lane) const { return counted || (mask[lane / 64] >> (lane % 64) & 1); }
    // The blocks of a repeat that have active elements, a bit for each.
    uint8_t blocks(uint32_t element) const {
        const uint32_t each = 32 / element;
        uint8_t found = 0;
        for (uint32_t lane = 0, block = 0; lane < lanes; lane += each, ++block)
            found |= (mask[lane / 64] >> (lane % 64) & ((1ull << each) - 1) ? 1u : 0u) << block;
        return found;
    }
    // True if no lane before the last active one is inactive.
    bool solid() const {
        const uint32_t n = counted ? lanes : lanes_in(0);
        return counted || static_cast<uint32_t>(__builtin_popcountll(mask[0]) + __builtin_popcountll(mask[1])) == n;
    }
};

// One checked operand in UB.
struct View {
    uint32_t addr = 0, element = 0;                // element: bytes of one element
    uint32_t block_stride = 1, repeat_stride = 8;  // in blocks

    uint32_t per_block() const { return 32 / element; }
    // Address of a lane of a repeat.
    uint64_t offset(uint32_t repeat, uint32_t lane) const {
        return (static_cast<uint64_t>(repeat) * repeat_stride +
                static_cast<uint64_t>(lane / per_block()) * block_stride) *
                   32 +
               lane % per_block() * element;
    }
    // Bytes from the start to the end of the last active element.
    uint64_t extent(const Steps &steps) const;
    // True if the active elements are adjacent.
    bool dense(const Steps &steps) const;
};

inline uint32_t end_of(const View &view, const Steps &steps) {
    return static_cast<uint32_t>(view.addr + view.extent(steps));
}

// Adds an operand to an instruction record.
inline void add_operand(Instr &record, const View &view) {
    Operand &operand = record.operand[record.operands++];
    operand.addr = view.addr;
    operand.block_stride = static_cast<uint16_t>(view.block_stride);
    operand.repeat_stride = static_cast<uint16_t>(view.repeat_stride);
}

// Copies the first `lanes` lanes of a repeat between an operand and a row of elements.
void gather_lanes(const View &view, const uint8_t *memory, uint32_t repeat, uint32_t lanes, uint8_t *row);
void scatter_lanes(const View &view, uint8_t *memory, uint32_t repeat, uint32_t lanes, const Steps &steps,
                   const uint8_t *row);

// How a destination meets a source. The unit is a pipeline: it has read the sources of several repeats before the first
// result is written.
enum class Overlap {
    Allowed,
    Partial,        // a repeat writes a part of what it reads
    EarlierRepeat,  // a repeat reads what an earlier one wrote
};

// `accumulates`: the destination may be this source in every repeat, with repeat strides of 0.
Overlap overlap_of(const View &dst, const View &src, const Steps &steps, bool accumulates);

// Blocks of UB that the repeats of one instruction have written so far.
class WrittenBlocks {
public:
    void add(uint64_t block) { bits_[block / 64] |= 1ull << (block % 64); }
    bool has(uint64_t block) const { return bits_[block / 64] >> (block % 64) & 1; }
    // The same for the blocks of `bytes` bytes from an address.
    void add_bytes(uint64_t addr, uint64_t bytes) {
        for (uint64_t block = addr / block_bytes; block * block_bytes < addr + bytes; ++block) add(block);
    }
    bool has_bytes(uint64_t addr, uint64_t bytes) const {
        for (uint64_t block = addr / block_bytes; block * block_bytes < addr + bytes; ++block) {
            if (has(block)) return true;
        }
        return false;
    }

private:
    uint64_t bits_[capacity_of(ASC_UB) / block_bytes / 64] = {};
};

// Marks an element valid if all bytes of its sources are.
void combine_validity(uint8_t *dst, uint32_t dst_element, const uint8_t *src, uint32_t src_element, size_t n,
                      bool first);

// Runs apply(dst, a, b, n) over the operands: in one call if they are dense, otherwise repeat by repeat through rows of
// elements. `a` and `b` may be null; `reads_dst`: the old destination is also a source.
template <class Apply>
void run_elementwise(LocalMemory &memory, const Steps &steps, const View &dst, const View *a, const View *b,
                     bool reads_dst, Apply apply) {
    const size_t n = steps.elements;
    if (n == 0) return;
    const uint64_t d_end = dst.addr + dst.extent(steps);
    const uint64_t a_end = a ? a->addr + a->extent(steps) : 0, b_end = b ? b->addr + b->extent(steps) : 0;
    uint8_t *data = memory.data(0, static_cast<uint32_t>(std::max({d_end, a_end, b_end})));
    uint8_t *valid = memory.valid(0, static_cast<uint32_t>(d_end));
    if (dst.dense(steps) && (!a || a->dense(steps)) && (!b || b->dense(steps))) {
        apply(data + dst.addr, a ? data + a->addr : nullptr, b ? data + b->addr : nullptr, n);
        const bool clean = (!a || memory.all_valid(a->addr, static_cast<uint32_t>(a_end))) &&
                           (!b || memory.all_valid(b->addr, static_cast<uint32_t>(b_end)));
        if (clean && !reads_dst) {
            std::memset(valid + dst.addr, 1, n * dst.element);
            return;
        }
        bool first = !reads_dst;
        for (const View *source : {a, b}) {
            if (!source) continue;
            combine_validity(valid + dst.addr, dst.element, valid + source->addr, source->element, n, first);
            first = false;
        }
        return;
    }
    alignas(32) uint8_t rows[3][1024], checks[3][1024];
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat);
        if (reads_dst) {
            gather_lanes(dst, data, repeat, lanes, rows[0]);
            gather_lanes(dst, valid, repeat, lanes, checks[0]);
        } else {
            std::memset(checks[0], 1, lanes * dst.element);
        }
        const View *sources[] = {a, b};
        for (int i = 0; i < 2; ++i) {
            if (!sources[i]) continue;
            gather_lanes(*sources[i], data, repeat, lanes, rows[i + 1]);
            gather_lanes(*sources[i], valid, repeat, lanes, checks[i + 1]);
            combine_validity(checks[0], dst.element, checks[i + 1], sources[i]->element, lanes, false);
        }
        apply(rows[0], rows[1], rows[2], lanes);
        scatter_lanes(dst, data, repeat, lanes, steps, rows[0]);
        scatter_lanes(dst, valid, repeat, lanes, steps, checks[0]);
    }
}

}  // namespace sim

// Merging sorted lists of pairs, and transposing blocks.
#include <array>

#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t pair_bytes = 8, max_pairs = 4095;

float score(uint32_t dtype, const uint8_t *pair) {
    return dtype == ASC_F32 ? *reinterpret_cast<const Row<float> *>(pair)
                            : float_from_half(*reinterpret_cast<const Row<uint16_t> *>(pair));
}

struct List {
    const uint8_t *data, *valid;
    uint32_t pairs, taken = 0;
    bool ended() const { return taken == pairs; }
};

// The list whose next pair is the largest; the first such list if several are equal.
size_t best_of(const std::vector<List> &lists, uint32_t dtype) {
    size_t best = lists.size();
    float most = 0;
    for (size_t i = 0; i < lists.size(); ++i) {
        if (lists[i].ended()) continue;
        const float next = score(dtype, lists[i].data + lists[i].taken * pair_bytes);
        if (best < lists.size() && !(next > most)) continue;
        best = i;
        most = next;
    }
    return best;
}
}  // namespace

// With one repeat the lists start at their tensors; with more, list j of repeat i is the (4 i + j)-th after the first.
void Executor::merge_sorted(uint32_t dtype, asc_local dst, asc_lists given, int32_t line) {
    Core &core = running(line);
    element_of(dtype, floats, "MrgSort");
    if (given.until_empty > 1) diagnostics_.fail(Rule::Protocol, "MrgSort");
    bool fits = given.lists >= 2 && given.lists <= 4 && given.repeat <= 255;
    uint64_t pairs = 0;
    for (uint32_t i = 0; fits && i < given.lists; ++i) {
        fits = given.count[i] <= max_pairs &&
               (given.repeat <= 1 || (given.lists == 4 && given.count[i] == given.count[0]));
        pairs += given.count[i];
    }
    if (!fits || (given.repeat > 1 && given.until_empty)) {
        diagnostics_.fail(Rule::Repeat, text("MrgSort of %u lists in %u repeats", given.lists, given.repeat),
                          "it merges 2 to 4 lists of up to 4095 pairs; several repeats take 4 lists of one length");
    }
    if (given.repeat == 0 || pairs == 0) return;
    core.merged = 0;
    const Bytes to = ub_bytes(dst, given.repeat * pairs * pair_bytes, 32, "MrgSort", "destination");
    std::array<Bytes, 4> from;
    core.clocks.issue(ASC_V);
    for (uint32_t i = 0; i < given.lists; ++i) {
        const uint64_t reach = given.repeat > 1 ? (given.repeat - 1) * pairs + given.count[i] : given.count[i];
        from[i] = ub_bytes(given.list[i], reach * pair_bytes, pair_bytes, "MrgSort", "list");
        if (from[i].begin < to.end && to.begin < from[i].end)
            diagnostics_.fail(Rule::Overlap, "MrgSort writes over one of its lists");
        touch(core, ASC_V, from[i], false, "MrgSort");
    }
    touch(core, ASC_V, to, true, "MrgSort");
    count("MrgSort");
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Merge;
    record.dtype = static_cast<uint8_t>(dtype);
    record.elements = static_cast<uint32_t>(given.repeat * pairs);
    record.repeats = static_cast<uint32_t>(divide_up(record.elements, 32));
    record.operands = 2;
    record.operand[0] = {dst.addr, 1, 8};
    record.operand[1] = {given.list[0].addr, 1, 8};
    emit(record);
    for (uint32_t i = 0; i < given.lists; ++i) core.merged |= static_cast<uint64_t>(given.count[i]) << 16 * i;
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    uint32_t used = to.end;
    for (uint32_t i = 0; i < given.lists; ++i) used = std::max(used, from[i].end);
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    for (uint32_t repeat = 0; repeat < given.repeat; ++repeat) {
        std::vector<List> lists;
        bool good = true;
        for (uint32_t i = 0; i < given.lists; ++i) {
            const uint64_t at = from[i].begin + repeat * pairs * pair_bytes, bytes = given.count[i] * pair_bytes;
            lists.push_back({data + at, valid + at, given.count[i]});
            good = good && (bytes == 0 || !std::memchr(valid + at, 0, bytes));
        }
        uint64_t place = to.begin + repeat * pairs * pair_bytes;
        for (size_t best; (best = best_of(lists, dtype)) < lists.size(); place += pair_bytes) {
            List &list = lists[best];
            std::memcpy(data + place, list.data + list.taken++ * pair_bytes, pair_bytes);
            std::memset(valid + place, good, pair_bytes);
            if (given.until_empty && list.ended()) break;
        }
        core.merged = 0;
        for (size_t i = 0; i < lists.size(); ++i) core.merged |= static_cast<uint64_t>(lists[i].taken) << 16 * i;
    }
}

uint64_t Executor::merge_counts(int32_t line) {
    Core &core = running(line);
    data_dependent_ = true;
    wait_for(core, ASC_S, ASC_V);
    return core.merged;
}

namespace {
// Cycles in which the bank groups give or take sixteen blocks.
uint32_t cycles_of(const uint32_t (&addresses)[16]) {
    uint64_t blocks[16];
    for (uint32_t i = 0; i < 16; ++i) blocks[i] = addresses[i] / block_bytes;
    return fullest_bank_group(std::begin(blocks), std::end(blocks));
}
}  // namespace

// Elements of 8 bits use half of each block: 16 of them become half a block of each destination.
void Executor::transpose_blocks(uint32_t dtype, asc_blocks16 blocks, asc_transpose_steps steps, int32_t line) {
    Core &core = running(line);
    const char *what = "TransDataTo5HD";
    const uint32_t element = element_of(dtype, movable | bit_of(ASC_I8) | bit_of(ASC_U8), what);
    if (steps.repeat > 255 || steps.dst_step > 65535 || steps.src_step > 65535 || steps.dst_high > 1 ||
        steps.src_high > 1)
        diagnostics_.fail(Rule::Repeat, text("%s with %u repeats, steps %u and %u", what, steps.repeat, steps.dst_step,
                                             steps.src_step));
    if (steps.repeat == 0) return;
    const uint64_t last = steps.repeat - 1;
    core.clocks.issue(ASC_V);
    uint32_t used = 0, begins[2] = {UINT32_MAX, UINT32_MAX}, ends[2] = {};
    for (uint32_t side = 0; side < 2; ++side) {
        const uint64_t reach = (side ? steps.src_step : steps.dst_step) * last * block_bytes + block_bytes;
        for (uint32_t addr : side ? blocks.src : blocks.dst) {
            const asc_local tensor = {addr, UINT32_MAX, ASC_UB};
            const Bytes range = ub_bytes(tensor, reach, 32, what, side ? "source" : "destination");
            touch(core, ASC_V, range, !side, what);
            begins[side] = std::min(begins[side], range.begin);
            ends[side] = std::max(ends[side], range.end);
            used = std::max(used, range.end);
        }
    }
    if (begins[0] < ends[1] && begins[1] < ends[0]) {
        WrittenBlocks written;
        for (uint64_t repeat = 0; repeat < steps.repeat; ++repeat) {
            for (uint32_t addr : blocks.src) {
                if (written.has(addr / block_bytes + repeat * steps.src_step))
                    fail_earlier_repeat(what, blocks.dst[0], addr);
            }
            for (uint32_t addr : blocks.dst) written.add(addr / block_bytes + repeat * steps.dst_step);
        }
    }
    count(what);
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Transpose;
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = 2 * steps.repeat;
    record.elements = steps.repeat * 16 * (element == 1 ? 16 : block_bytes / element);
    record.a = std::max(cycles_of(blocks.src), cycles_of(blocks.dst));
    record.operands = 2;
    record.operand[0] = {blocks.dst[0], 1, static_cast<uint16_t>(steps.dst_step)};
    record.operand[1] = {blocks.src[0], 1, static_cast<uint16_t>(steps.src_step)};
    emit(record);
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t columns = element == 1 ? 16 : block_bytes / element, dst_half = steps.dst_high * 16,
                   src_half = steps.src_high * 16;
    for (uint8_t *bytes : {ub.data(0, used), ub.valid(0, used)}) {
        for (uint64_t repeat = 0; repeat < steps.repeat; ++repeat) {
            uint8_t old[16][block_bytes];
            for (uint32_t row = 0; row < 16; ++row)
                std::memcpy(old[row], bytes + blocks.src[row] + repeat * steps.src_step * block_bytes, block_bytes);
            for (uint32_t row = 0; row < 16; ++row) {
                for (uint32_t column = 0; column < columns; ++column) {
                    // A row of 16 results is one block of 16-bit elements, two of 32 bits, half of one of 8 bits.
                    const uint32_t byte = row * element, block = column * (element == 4 ? 2 : 1) + byte / block_bytes;
                    uint8_t *to = bytes + blocks.dst[block] + repeat * steps.dst_step * block_bytes;
                    const uint32_t at = element == 1 ? dst_half + row : byte % block_bytes;
                    std::memcpy(to + at, old[row] + (element == 1 ? src_half : 0) + column * element, element);
                }
            }
        }
    }
}

}  // namespace sim

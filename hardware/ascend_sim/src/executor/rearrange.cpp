// Instructions that create, spread, gather, transpose and sort elements.
#include <array>
#include <numeric>

#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t gatherable = movable | bit_of(ASC_I8) | bit_of(ASC_U8);

template <class T>
void arange(uint8_t *dst, uint64_t first, uint64_t step, size_t n) {
    Row<T> *d = reinterpret_cast<Row<T> *>(dst);
    T start, by;
    std::memcpy(&start, &first, sizeof start);
    std::memcpy(&by, &step, sizeof by);
    for (size_t i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<T>)
            d[i] = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(by) * i);
        else d[i] = canonical(start + by * static_cast<T>(i));
    }
}

void arange_half(uint8_t *dst, uint64_t first, uint64_t step, size_t n) {
    Row<uint16_t> *d = reinterpret_cast<Row<uint16_t> *>(dst);
    const float start = float_from_half(static_cast<uint16_t>(first)),
                by = float_from_half(static_cast<uint16_t>(step));
    for (size_t i = 0; i < n; ++i) d[i] = half_from_float(start + by * static_cast<float>(i));
}

// Lanes that a fixed pattern of GatherMask keeps.
bool pattern_keeps(uint32_t pattern, uint32_t lane) {
    switch (pattern) {
        case 1: return lane % 2 == 0;
        case 2: return lane % 2 == 1;
        case 3:
        case 4:
        case 5:
        case 6: return lane % 4 == pattern - 3;
        default: return true;
    }
}

constexpr uint32_t fewer(uint64_t a, uint64_t b) { return static_cast<uint32_t>(a < b ? a : b); }
}  // namespace

void Executor::index(uint32_t dtype, asc_local dst, uint64_t first, uint64_t step, uint32_t elements, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, numbers, "CreateVecIndex");
    asc_walk walk = {};
    walk.form = ASC_COUNT;
    walk.count = elements;
    const Steps steps = steps_of(core, walk, element, "CreateVecIndex");
    if (steps.elements == 0) return;
    const View to = view_of(dst, element, 1, 8, steps, "CreateVecIndex", "destination");
    core.clocks.issue(ASC_V);
    touch(core, to, steps, true, "CreateVecIndex");
    count("CreateVecIndex");
    Instr record = vector_instr(Family::Index, 0, dtype, steps);
    add_operand(record, to);
    emit(record);
    if (!options_.compute) return;
    work(elements);
    run_elementwise(core.memory(ASC_UB), steps, to, nullptr, nullptr, false,
                    [&](uint8_t *d, const uint8_t *, const uint8_t *, size_t n) {
                        switch (dtype) {
                            case ASC_F32: return arange<float>(d, first, step, n);
                            case ASC_I16: return arange<int16_t>(d, first, step, n);
                            case ASC_I32: return arange<int32_t>(d, first, step, n);
                            default: return arange_half(d, first, step, n);
                        }
                    });
}

// Each of eight elements fills one block.
void Executor::brcb(uint32_t dtype, asc_local dst, asc_local src, asc_walk walk, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, movable, "Brcb");
    if (walk.repeat > 255 || walk.dst_block == 0)
        diagnostics_.fail(Rule::Repeat, text("Brcb with %u repeats and block stride %u", walk.repeat, walk.dst_block));
    if (walk.repeat == 0) return;
    const uint64_t extent =
        (static_cast<uint64_t>(walk.repeat - 1) * walk.dst_repeat + 7ull * walk.dst_block) * 32 + 32;
    const Bytes to = ub_bytes(dst, extent, 32, "Brcb", "destination"),
                from = ub_bytes(src, 8ull * walk.repeat * element, 32, "Brcb", "source");
    if (to.begin < from.end && from.begin < to.end) diagnostics_.fail(Rule::Overlap, "Brcb writes over its source");
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, from, false, "Brcb");
    touch(core, ASC_V, to, true, "Brcb");
    count("Brcb");
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Brcb;
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = walk.repeat;
    record.elements = 8u * walk.repeat;
    record.operands = 2;
    record.operand[0] = {dst.addr, walk.dst_block, walk.dst_repeat};
    record.operand[1] = {src.addr, 1, 1};
    emit(record);
    if (!options_.compute) return;
    work(record.elements * (32 / element));
    LocalMemory &ub = core.memory(ASC_UB);
    uint8_t *data = ub.data(0, std::max(to.end, from.end)), *valid = ub.valid(0, std::max(to.end, from.end));
    for (uint32_t i = 0; i < record.elements; ++i) {
        const uint32_t at = dst.addr + (i / 8 * walk.dst_repeat + i % 8 * walk.dst_block) * 32;
        for (uint32_t j = 0; j < 32; j += element) {
            std::memcpy(data + at + j, data + src.addr + i * element, element);
            std::memcpy(valid + at + j, valid + src.addr + i * element, element);
        }
    }
}

namespace {
// Cycles in which the bank groups give the blocks of a repeat: each gives one block to one block of lanes in a cycle.
uint32_t cycles_of_reading(const Steps &steps, uint32_t repeat, uint32_t piece, const uint32_t *offsets,
                           uint64_t begin) {
    std::array<uint64_t, 256> blocks;
    auto end = blocks.begin();
    for (uint32_t lane = 0; lane < steps.lanes_in(repeat); ++lane) {
        const uint64_t lanes = lane * piece / block_bytes;
        if (steps.active(lane)) *end++ = lanes << 32 | (begin + offsets[lane]) / block_bytes;
    }
    std::sort(blocks.begin(), end);
    return fullest_bank_group(blocks.begin(), std::unique(blocks.begin(), end));
}

// Cycles in which the bank groups take the blocks of a repeat of Gatherb.
uint32_t cycles_of_writing(const View &to) {
    std::array<uint64_t, 8> blocks;
    for (uint32_t i = 0; i < blocks.size(); ++i) blocks[i] = i * to.block_stride;
    return fullest_bank_group(blocks.begin(), blocks.end());
}
}  // namespace

// Gather takes elements, Gatherb whole blocks, at offsets in bytes.
void Executor::gather(uint32_t dtype, asc_local dst, asc_local src, asc_local offsets, uint32_t base, uint32_t blocks,
                      asc_walk walk, int32_t line) {
    Core &core = running(line);
    const char *what = blocks ? "Gatherb" : "Gather";
    if (blocks > 1) diagnostics_.fail(Rule::Protocol, "Gather");
    const uint32_t element = element_of(dtype, blocks ? gatherable : movable, what), piece = blocks ? 32 : element;
    Steps steps;
    if (blocks) {
        steps.lanes = 8;
        steps.repeats = walk.repeat;
        steps.elements = 8ull * walk.repeat;
        steps.mask[0] = 0xff;
        if (walk.repeat > 255) diagnostics_.fail(Rule::Repeat, text("Gatherb with %u repeats", walk.repeat));
    } else {
        steps = steps_of(core, walk, element, what);
    }
    if (steps.elements == 0) return;
    if (!steps.contiguous && walk.dst_block == 0) diagnostics_.fail(Rule::Repeat, text("%s with block stride 0", what));
    const View to = view_of(dst, piece, blocks ? walk.dst_block : 1, walk.dst_repeat, steps, what, "destination");
    const uint64_t listed = steps.contiguous || steps.counted
                                ? steps.elements
                                : static_cast<uint64_t>(steps.repeats - 1) * steps.lanes + steps.lanes_in(0);
    const Bytes list = ub_bytes(offsets, listed * 4, 32, what, "offsets");
    const Bytes from = ub_bytes(src, src.bytes, 32, what, "source");
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, list, false, what);
    touch(core, ASC_V, from, false, what);
    touch(core, to, steps, true, what);
    count(what);
    Instr record = vector_instr(Family::Gather, blocks, dtype, steps);
    add_operand(record, to);
    record.operands = 3;
    record.operand[1] = {src.addr, 1, 8};
    record.operand[2] = {offsets.addr, 1, 8};
    if (!options_.compute) return emit(record);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({end_of(to, steps), list.end, from.end});
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    if (!ub.all_valid(list.begin, list.end))
        diagnostics_.fail(Rule::Uninitialised, text("%s has offsets that were never written", what));
    const Row<uint32_t> *places = reinterpret_cast<const Row<uint32_t> *>(data + list.begin);
    const std::vector<uint32_t> wanted(places, places + listed);
    const uint32_t writing = blocks ? cycles_of_writing(to) : 1;
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t reading =
            cycles_of_reading(steps, repeat, piece, &wanted[repeat * steps.lanes], src.addr + base);
        record.a += std::max(reading, writing);
    }
    emit(record);
    work(steps.elements);
    const std::vector<uint8_t> source(data + from.begin, data + from.end),
        source_valid(valid + from.begin, valid + from.end);
    const auto place_of = [&](uint32_t repeat, uint32_t lane) {
        const uint64_t number = static_cast<uint64_t>(repeat) * steps.lanes + lane;
        return to.addr + (steps.contiguous ? number * piece : to.offset(repeat, lane));
    };
    WrittenBlocks earlier;
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat);
        if (earlier.has_bytes(list.begin + static_cast<uint64_t>(repeat) * steps.lanes * 4, lanes * 4))
            fail_earlier_repeat(what, to.addr, list.begin);
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            if (!steps.active(lane)) continue;
            const uint64_t at = static_cast<uint64_t>(wanted[repeat * steps.lanes + lane]) + base;
            if (at % piece || at + piece > source.size()) {
                diagnostics_.fail(Rule::Gather, text("%s takes byte %llu of a source of %zu bytes", what,
                                                     static_cast<unsigned long long>(at), source.size()));
            }
            if (earlier.has((src.addr + at) / block_bytes)) fail_earlier_repeat(what, to.addr, src.addr);
            std::memcpy(data + place_of(repeat, lane), source.data() + at, piece);
            std::memcpy(valid + place_of(repeat, lane), source_valid.data() + at, piece);
        }
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            if (steps.active(lane)) earlier.add(place_of(repeat, lane) / block_bytes);
        }
    }
}

void Executor::gather_mask(uint32_t dtype, asc_local dst, asc_local src, asc_local mask, uint32_t pattern,
                           uint32_t reduce, uint32_t per_repeat, asc_walk walk, int32_t line) {
    Core &core = running(line);
    const char *what = "GatherMask";
    const uint32_t element = element_of(dtype, movable, what), lanes = 256 / element, per_block = 32 / element;
    if (pattern > 7 || reduce > 1)
        diagnostics_.fail(Rule::Repeat, text("%s with pattern %u", what, pattern), "patterns are 1 to 7");
    // In reduce mode each repeat reads `per_repeat` elements, otherwise one repeat of 256 bytes.
    const uint32_t each = reduce ? per_repeat : lanes;
    core.gathered = 0;
    if (walk.repeat == 0 || each == 0) return;
    if (each > capacity_of(ASC_UB)) diagnostics_.fail(Rule::Repeat, text("%s with mask %u", what, each));
    const uint64_t last_block = (each - 1) / per_block, steps_back = walk.repeat - 1;
    const uint64_t extent =
        (steps_back * walk.src0_repeat + last_block * walk.src0_block) * 32 + ((each - 1) % per_block + 1) * element;
    const Bytes from = ub_bytes(src, extent, 32, what, "source");
    const uint64_t bits = pattern ? 0 : steps_back * walk.src1_repeat * 32 + divide_up(each, 8);
    const Bytes chosen = pattern ? Bytes{ASC_UB, 0, 0} : ub_bytes(mask, bits, 32, what, "mask");
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, from, false, what);
    if (!pattern) touch(core, ASC_V, chosen, false, what);
    uint64_t most = 0;
    for (uint32_t lane = 0; lane < each; ++lane) most += pattern_keeps(pattern, lane);
    most *= walk.repeat;
    const Bytes to = ub_bytes(dst, pattern ? most * element : 0, 32, what, "destination");
    touch(core, ASC_V,
          {ASC_UB, dst.addr,
           dst.addr + fewer(std::min<uint64_t>(most * element, dst.bytes), capacity_of(ASC_UB) - dst.addr)},
          true, what);
    count(what);
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::GatherMask;
    record.op = static_cast<uint16_t>(pattern);
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = static_cast<uint32_t>(walk.repeat * divide_up(each, lanes));
    record.elements = each * walk.repeat;
    record.operands = 2;
    record.operand[0] = {dst.addr, 1, 8};
    record.operand[1] = {src.addr, walk.src0_block, walk.src0_repeat};
    emit(record);
    core.gathered = most;
    if (!pattern) data_dependent_ = true;
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({from.end, chosen.end, to.end});
    ub.data(0, used);
    if (!pattern && !ub.all_valid(chosen.begin, chosen.end))
        diagnostics_.fail(Rule::Uninitialised, text("%s has a mask that was never written", what));
    const uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    std::vector<uint8_t> kept, kept_valid;
    for (uint32_t repeat = 0; repeat < walk.repeat; ++repeat) {
        for (uint32_t lane = 0; lane < each; ++lane) {
            const bool keep = pattern
                                  ? pattern_keeps(pattern, lane)
                                  : (data[mask.addr + repeat * walk.src1_repeat * 32u + lane / 8] >> (lane % 8) & 1);
            if (!keep) continue;
            const uint64_t at = src.addr +
                                (static_cast<uint64_t>(repeat) * walk.src0_repeat +
                                 static_cast<uint64_t>(lane / per_block) * walk.src0_block) *
                                    32 +
                                lane % per_block * element;
            kept.insert(kept.end(), data + at, data + at + element);
            kept_valid.insert(kept_valid.end(), valid + at, valid + at + element);
        }
    }
    core.gathered = kept.size() / element;
    if (kept.empty()) return;
    const Bytes written = ub_bytes(dst, kept.size(), 32, what, "destination");
    std::memcpy(ub.data(written.begin, written.end), kept.data(), kept.size());
    std::memcpy(ub.valid(written.begin, written.end), kept_valid.data(), kept.size());
}

void Executor::transpose16(uint32_t dtype, asc_local dst, asc_local src, int32_t line) {
    Core &core = running(line);
    element_of(dtype, words16 | bit_of(ASC_F16) | bit_of(ASC_BF16), "Transpose");
    const Bytes to = ub_bytes(dst, 512, 32, "Transpose", "destination"),
                from = ub_bytes(src, 512, 32, "Transpose", "source");
    if (to.begin < from.end && from.begin < to.end && to.begin != from.begin)
        diagnostics_.fail(Rule::Overlap, "Transpose writes over part of its source");
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, from, false, "Transpose");
    touch(core, ASC_V, to, true, "Transpose");
    count("Transpose");
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Transpose;
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = 2;
    record.elements = 256;
    record.operands = 2;
    record.operand[0] = {dst.addr, 1, 8};
    record.operand[1] = {src.addr, 1, 8};
    emit(record);
    if (!options_.compute) return;
    work(256);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max(to.end, from.end);
    for (uint8_t *bytes : {ub.data(0, used), ub.valid(0, used)}) {
        std::array<uint8_t, 512> old;
        std::memcpy(old.data(), bytes + from.begin, 512);
        for (uint32_t i = 0; i < 256; ++i) std::memcpy(bytes + to.begin + (i % 16 * 16 + i / 16) * 2, &old[i * 2], 2);
    }
}

// Sorts each group of 32 elements into pairs of value and index, 8 bytes each, the largest first.
void Executor::sort32(uint32_t dtype, asc_local dst, asc_local src, asc_local index, uint32_t repeat, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, floats, "Sort32");
    if (repeat > 255) diagnostics_.fail(Rule::Repeat, text("Sort32 with %u repeats", repeat));
    if (repeat == 0) return;
    const Bytes to = ub_bytes(dst, repeat * 256ull, 32, "Sort32", "destination"),
                from = ub_bytes(src, repeat * 32ull * element, 32, "Sort32", "source");
    const Bytes ids = ub_bytes(index, repeat * 128ull, 32, "Sort32", "indices");
    if ((to.begin < from.end && from.begin < to.end) || (to.begin < ids.end && ids.begin < to.end))
        diagnostics_.fail(Rule::Overlap, "Sort32 writes over its sources");
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, from, false, "Sort32");
    touch(core, ASC_V, ids, false, "Sort32");
    touch(core, ASC_V, to, true, "Sort32");
    count("Sort32");
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = Family::Sort;
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = repeat;
    record.elements = repeat * 32;
    record.operands = 2;
    record.operand[0] = {dst.addr, 1, 8};
    record.operand[1] = {src.addr, 1, 8};
    emit(record);
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({to.end, from.end, ids.end});
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    for (uint32_t r = 0; r < repeat; ++r) {
        float value[32];
        for (uint32_t i = 0; i < 32; ++i) {
            const uint8_t *at = data + from.begin + (r * 32 + i) * element;
            value[i] = dtype == ASC_F32 ? *reinterpret_cast<const Row<float> *>(at)
                                        : float_from_half(*reinterpret_cast<const Row<uint16_t> *>(at));
        }
        std::array<uint32_t, 32> order;
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            return value[a] > value[b] || (value[a] != value[a] && value[b] == value[b]);
        });
        const bool good = !std::memchr(valid + from.begin + r * 32 * element, 0, 32 * element) &&
                          !std::memchr(valid + ids.begin + r * 128, 0, 128);
        for (uint32_t i = 0; i < 32; ++i) {
            uint8_t *at = data + to.begin + (r * 32 + i) * 8;
            std::memset(at, 0, 8);
            std::memcpy(at, data + from.begin + (r * 32 + order[i]) * element, element);
            std::memcpy(at + 4, data + ids.begin + (r * 32 + order[i]) * 4, 4);
        }
        std::memset(valid + to.begin + r * 256, good, 256);
    }
}

}  // namespace sim

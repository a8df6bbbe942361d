// Compare and Select: one bit for each element, the first in the lowest bit of the first byte.
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t select_modes = 3;  // VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE
enum { same_mask_every_repeat, with_scalar_mode, with_tensor_mode };

template <class T>
bool holds(uint32_t mode, T a, T b) {
    switch (mode) {
        case ASC_LT: return a < b;
        case ASC_GT: return a > b;
        case ASC_EQ: return a == b;
        case ASC_LE: return a <= b;
        case ASC_GE: return a >= b;
        default: return a != b;
    }
}

bool compare_at(uint32_t mode, uint32_t dtype, const uint8_t *a, const uint8_t *b) {
    switch (dtype) {
        case ASC_F32:
            return holds(mode, *reinterpret_cast<const Row<float> *>(a), *reinterpret_cast<const Row<float> *>(b));
        case ASC_I32:
            return holds(mode, *reinterpret_cast<const Row<int32_t> *>(a), *reinterpret_cast<const Row<int32_t> *>(b));
        default:
            return holds(mode, float_from_half(*reinterpret_cast<const Row<uint16_t> *>(a)),
                         float_from_half(*reinterpret_cast<const Row<uint16_t> *>(b)));
    }
}

// Compare ignores masks and works on whole repeats.
Steps all_lanes(Steps steps) {
    if (steps.counted) return steps;
    steps.mask[0] = ~0ull;
    steps.mask[1] = steps.lanes > 64 ? ~0ull : 0;
    steps.elements = static_cast<uint64_t>(steps.lanes) * steps.repeats;
    return steps;
}
}  // namespace

void Executor::compare(uint32_t mode, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, uint64_t scalar,
                       uint32_t with_scalar, asc_walk walk, int32_t line) {
    Core &core = running(line);
    const char *what = with_scalar ? "CompareScalar" : "Compare";
    if (mode > ASC_NE) diagnostics_.fail(Rule::Protocol, "Compare in an unknown mode");
    const uint32_t element = element_of(dtype, floats | bit_of(ASC_I32), what);
    if (dtype == ASC_I32 && mode != ASC_EQ)
        diagnostics_.fail(Rule::Dtype, text("%s of int32 knows only CMPMODE::EQ", what));
    const Steps steps = all_lanes(steps_of(core, walk, element, what));
    if (steps.counted && steps.elements * element % 256) {
        diagnostics_.fail(Rule::CompareSize, text("%s of %llu elements, which are %llu bytes", what,
                                                  static_cast<unsigned long long>(steps.elements),
                                                  static_cast<unsigned long long>(steps.elements * element)));
    }
    const View a = view_of(src0, element, walk.src0_block, walk.src0_repeat, steps, what, "source");
    const View b =
        with_scalar ? a : view_of(src1, element, walk.src1_block, walk.src1_repeat, steps, what, "second source");
    const uint64_t bits = steps.elements / 8;
    const Bytes to = ub_bytes(dst, bits, 32, what, "destination");
    for (const View *source : {&a, &b}) {
        if (to.begin >= end_of(*source, steps) || source->addr >= to.end) continue;
        WrittenBlocks written;
        for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
            for (uint32_t lane = 0, lanes = steps.lanes_in(repeat); lane < lanes; lane += source->per_block()) {
                if (written.has((source->addr + source->offset(repeat, lane)) / block_bytes))
                    fail_earlier_repeat(what, dst.addr, source->addr);
            }
            written.add_bytes(dst.addr + static_cast<uint64_t>(repeat) * steps.lanes / 8, steps.lanes / 8);
        }
    }
    core.clocks.issue(ASC_V);
    touch(core, a, steps, false, what);
    if (!with_scalar) touch(core, b, steps, false, what);
    touch(core, ASC_V, to, true, what);
    count(what);
    Instr record = vector_instr(Family::Compare, mode, dtype, steps);
    record.a = with_scalar ? 1 : 0;
    record.operands = 1;
    record.operand[0].addr = dst.addr;
    add_operand(record, a);
    if (!with_scalar) add_operand(record, b);
    emit(record);
    if (!options_.compute || steps.elements == 0) return;
    work(steps.elements);
    const uint8_t *constant = reinterpret_cast<const uint8_t *>(&scalar);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({end_of(a, steps), end_of(b, steps), to.end});
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    alignas(32) uint8_t rows[2][1024], checks[2][1024];
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat);
        gather_lanes(a, data, repeat, lanes, rows[0]);
        gather_lanes(a, valid, repeat, lanes, checks[0]);
        gather_lanes(b, data, repeat, lanes, rows[1]);
        gather_lanes(b, valid, repeat, lanes, checks[1]);
        uint8_t *out = data + dst.addr + repeat * steps.lanes / 8,
                *out_valid = valid + dst.addr + repeat * steps.lanes / 8;
        for (uint32_t lane = 0; lane < lanes; lane += 8) {
            uint8_t byte = 0;
            for (uint32_t i = 0; i < 8; ++i) {
                const uint8_t *x = rows[0] + (lane + i) * element,
                              *y = with_scalar ? constant : rows[1] + (lane + i) * element;
                byte = static_cast<uint8_t>(byte | compare_at(mode, dtype, x, y) << i);
            }
            out[lane / 8] = byte;
            out_valid[lane / 8] = !std::memchr(checks[0] + lane * element, 0, 8 * element) &&
                                  !std::memchr(checks[1] + lane * element, 0, 8 * element);
        }
    }
}

void Executor::select(uint32_t mode, uint32_t dtype, asc_local dst, asc_local mask, asc_local src0, asc_local src1,
                      uint64_t scalar, asc_walk walk, int32_t line) {
    Core &core = running(line);
    if (mode >= select_modes) diagnostics_.fail(Rule::Protocol, "Select in an unknown mode");
    const uint32_t element = element_of(dtype, floats, "Select");
    const Steps steps = steps_of(core, walk, element, "Select");
    if (!steps.contiguous && ((!steps.counted && walk.repeat > 255) || walk.dst_block == 0)) {
        diagnostics_.fail(Rule::Repeat,
                          text("Select with %u repeats and destination block stride %u", walk.repeat, walk.dst_block));
    }
    const View to = view_of(dst, element, walk.dst_block, walk.dst_repeat, steps, "Select", "destination");
    const View a = view_of(src0, element, walk.src0_block, walk.src0_repeat, steps, "Select", "source");
    const bool tensor = mode != with_scalar_mode;
    const View b =
        tensor ? view_of(src1, element, walk.src1_block, walk.src1_repeat, steps, "Select", "second source") : a;
    check_overlap(to, a, steps, false, "Select");
    check_overlap(to, b, steps, false, "Select");
    const uint64_t masked = mode == same_mask_every_repeat ? steps.lanes
                            : steps.counted                ? steps.elements
                                                           : static_cast<uint64_t>(steps.lanes) * steps.repeats;
    const Bytes bits = ub_bytes(mask, divide_up(masked, 8), 32, "Select", "mask");
    if (to.addr < bits.end && bits.begin < end_of(to, steps)) {
        WrittenBlocks written;
        for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
            const uint32_t lanes = steps.lanes_in(repeat),
                           first = mode == same_mask_every_repeat ? 0 : repeat * steps.lanes;
            if (written.has_bytes(mask.addr + first / 8, divide_up(lanes, 8)))
                fail_earlier_repeat("Select", dst.addr, mask.addr);
            for (uint32_t lane = 0; lane < lanes; lane += to.per_block())
                written.add((to.addr + to.offset(repeat, lane)) / block_bytes);
        }
    }
    core.clocks.issue(ASC_V);
    touch(core, ASC_V, bits, false, "Select");
    touch(core, a, steps, false, "Select");
    if (tensor) touch(core, b, steps, false, "Select");
    touch(core, to, steps, true, "Select");
    count("Select");
    Instr record = vector_instr(Family::Select, mode, dtype, steps);
    add_operand(record, to);
    add_operand(record, a);
    if (tensor) add_operand(record, b);
    emit(record);
    if (!options_.compute || steps.elements == 0) return;
    work(steps.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({end_of(a, steps), end_of(b, steps), end_of(to, steps), bits.end});
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    const uint8_t *constant = reinterpret_cast<const uint8_t *>(&scalar);
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat),
                       first = mode == same_mask_every_repeat ? 0 : repeat * steps.lanes;
        alignas(32) uint8_t row[1024], check[1024];
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            const uint32_t bit = first + lane;
            const bool chosen = data[mask.addr + bit / 8] >> (bit % 8) & 1;
            const uint64_t from = chosen ? a.addr + a.offset(repeat, lane) : b.addr + b.offset(repeat, lane);
            const bool is_constant = !chosen && !tensor;
            std::memcpy(row + lane * element, is_constant ? constant : data + from, element);
            const bool good = valid[mask.addr + bit / 8] && (is_constant || !std::memchr(valid + from, 0, element));
            std::memset(check + lane * element, good, element);
        }
        scatter_lanes(to, data, repeat, lanes, steps, row);
        scatter_lanes(to, valid, repeat, lanes, steps, check);
    }
}

}  // namespace sim

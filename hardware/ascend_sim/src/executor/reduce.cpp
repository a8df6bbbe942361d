// Reductions: a binary tree within a repeat, one repeat after another.
#include "reduce.h"

#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr const char *reduce_names[] = {"ReduceSum", "ReduceMax", "ReduceMin"};
constexpr const char *whole_names[] = {"WholeReduceSum", "WholeReduceMax", "WholeReduceMin"};
constexpr const char *block_names[] = {"BlockReduceSum", "BlockReduceMax", "BlockReduceMin"};
constexpr const char *pair_names[] = {"PairReduceSum", "PairReduceMax", "PairReduceMin"};
enum { order_value_index, order_index_value, order_only_value, order_only_index, orders };

// The lanes of one repeat, widened; inactive lanes have no effect.
struct Lanes {
    float value[128];
    uint8_t active[128], valid[128];

    bool all_valid(uint32_t from, uint32_t to) const { return !std::memchr(valid + from, 0, to - from); }
};

Lanes read_lanes(const View &view, const Steps &steps, uint32_t repeat, uint32_t op, uint32_t dtype,
                 const uint8_t *data, const uint8_t *valid) {
    const float neutral = op == ASC_REDUCE_SUM ? 0.0f : (op == ASC_REDUCE_MAX ? -__builtin_inff() : __builtin_inff());
    const uint32_t n = steps.lanes_in(repeat);
    alignas(32) uint8_t row[512], check[512];
    Lanes lanes;
    gather_lanes(view, data, repeat, n, row);
    gather_lanes(view, valid, repeat, n, check);
    if (dtype == ASC_F32) std::memcpy(lanes.value, row, n * 4);
    else floats_from_halves(lanes.value, reinterpret_cast<const Row<uint16_t> *>(row), n);
    const bool clean = !std::memchr(check, 0, n * view.element), solid = steps.solid();
    for (uint32_t lane = 0; lane < steps.lanes; ++lane) {
        lanes.active[lane] = lane < n && (solid || steps.active(lane));
        lanes.valid[lane] = !lanes.active[lane] || clean || !std::memchr(check + lane * view.element, 0, view.element);
        if (!lanes.active[lane]) lanes.value[lane] = neutral;
    }
    return lanes;
}

uint32_t first_best(const Lanes &lanes, uint32_t from, uint32_t to, uint32_t op) {
    uint32_t best = UINT32_MAX;
    for (uint32_t lane = from; lane < to; ++lane) {
        if (lanes.active[lane] && (best == UINT32_MAX || beats(op, lanes.value[lane], lanes.value[best]))) best = lane;
    }
    return best == UINT32_MAX ? from : best;
}

void put_value(uint8_t *at, uint32_t dtype, float value) {
    if (dtype == ASC_F32) *reinterpret_cast<Row<float> *>(at) = canonical(value);
    else *reinterpret_cast<Row<uint16_t> *>(at) = half_from_float(value);
}

void put_index(uint8_t *at, uint32_t dtype, uint32_t index) {
    if (dtype == ASC_F32) *reinterpret_cast<Row<uint32_t> *>(at) = index;
    else *reinterpret_cast<Row<uint16_t> *>(at) = static_cast<uint16_t>(index);
}
}  // namespace

bool beats(uint32_t op, float candidate, float best) {
    if (best != best) return false;
    if (candidate != candidate) return true;
    return op == ASC_REDUCE_MAX ? candidate > best : candidate < best;
}

float add_as(uint32_t dtype, float a, float b) {
    return dtype == ASC_F32 ? a + b : float_from_half(half_from_float(a + b));
}

float tree_sum(float *value, uint32_t n, uint32_t dtype) {
    for (; n > 1; n = (n + 1) / 2) {
        for (uint32_t i = 0; i < n / 2; ++i) value[i] = add_as(dtype, value[2 * i], value[2 * i + 1]);
        if (n % 2) value[n / 2] = value[n - 1];
    }
    return n ? value[0] : 0.0f;
}

uint64_t reduce_work_elements(uint32_t op, bool with_index, bool counted, uint64_t repeats, uint32_t element) {
    const uint64_t per_repeat = 256 / element, per_block = 32 / element;
    if (op == ASC_REDUCE_SUM) return counted ? 0 : round_up(repeats, per_block);
    uint64_t produced = 2 * repeats, total = round_up(produced, per_block);
    if (!with_index) return total;
    for (int round = 0; round < 2 && produced > 2; ++round) {
        produced = 2 * divide_up(produced, per_repeat);
        total += round_up(produced, per_block);
    }
    return total;
}

void Executor::reduce(uint32_t op, uint32_t dtype, asc_local dst, asc_local src, asc_local work_tensor,
                      uint32_t with_index, uint32_t src_repeat_stride, asc_walk walk, int32_t line) {
    Core &core = running(line);
    if (op > ASC_REDUCE_MIN) diagnostics_.fail(Rule::Protocol, "an unknown reduction");
    const char *what = reduce_names[op];
    const uint32_t element = element_of(dtype, floats, what);
    const bool index = with_index && op != ASC_REDUCE_SUM;
    const Steps steps = steps_of(core, walk, element, what);
    if (steps.elements == 0) return;
    if (src_repeat_stride > 65535)
        diagnostics_.fail(Rule::Repeat, text("%s with source repeat stride %u", what, src_repeat_stride));
    const View from = view_of(src, element, 1, src_repeat_stride, steps, what, "source");
    const Bytes to = ub_bytes(dst, element * (index ? 2u : 1u), element, what, "destination");
    const uint64_t needed = reduce_work_elements(op, index, steps.counted, steps.repeats, element) * element;
    if (work_tensor.bytes < needed) {
        diagnostics_.fail(Rule::WorkBuffer,
                          text("%s of %llu elements needs a work tensor of %llu bytes, this one has %u", what,
                               static_cast<unsigned long long>(steps.elements), static_cast<unsigned long long>(needed),
                               work_tensor.bytes));
    }
    const Bytes scratch = needed ? ub_bytes(work_tensor, needed, 32, what, "work tensor") : Bytes{ASC_UB, 0, 0};
    const uint64_t end = from.addr + from.extent(steps);
    if (needed && scratch.begin < end && from.addr < scratch.end)
        diagnostics_.fail(Rule::Overlap, text("%s has its work tensor over its source", what));
    core.clocks.issue(ASC_V);
    touch(core, from, steps, false, what);
    if (needed) touch(core, ASC_V, scratch, true, what);
    touch(core, ASC_V, to, true, what);
    count(what);
    Instr record = vector_instr(Family::Reduce, op, dtype, steps);
    record.a = index;
    record.operands = 1;
    record.operand[0].addr = dst.addr;
    add_operand(record, from);
    emit(record);
    if (!options_.compute) return;

    work(steps.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max({static_cast<uint32_t>(end), to.end, scratch.end});
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    float total = 0;
    uint32_t place = 0;
    bool good = true;
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        Lanes lanes = read_lanes(from, steps, repeat, op, dtype, data, valid);
        good = good && lanes.all_valid(0, steps.lanes);
        if (op == ASC_REDUCE_SUM) {
            const float sum = tree_sum(lanes.value, steps.lanes, dtype);
            total = repeat ? add_as(dtype, total, sum) : sum;
            continue;
        }
        const uint32_t best = first_best(lanes, 0, steps.lanes, op);
        if (repeat == 0 || beats(op, lanes.value[best], total)) {
            total = lanes.value[best];
            place = repeat * steps.lanes + best;
        }
    }
    if (needed) ub.set_valid(scratch.begin, scratch.end, false);
    put_value(data + dst.addr, dtype, total);
    if (index) put_index(data + dst.addr + element, dtype, place);
    ub.set_valid(to.begin, to.end, good);
}

void Executor::reduce_parts(uint32_t op, uint32_t unit, uint32_t dtype, asc_local dst, asc_local src, uint32_t order,
                            asc_walk walk, int32_t line) {
    Core &core = running(line);
    if (op > ASC_REDUCE_MIN || unit > ASC_PER_PAIR || order >= orders)
        diagnostics_.fail(Rule::Protocol, "an unknown reduction");
    const char *what = (unit == ASC_PER_REPEAT ? whole_names : (unit == ASC_PER_BLOCK ? block_names : pair_names))[op];
    if (unit == ASC_PER_PAIR && op != ASC_REDUCE_SUM) diagnostics_.fail(Rule::Protocol, "pairs are only summed");
    const uint32_t element = element_of(dtype, floats, what);
    const Steps steps = steps_of(core, walk, element, what);
    if (steps.elements == 0) return;
    if (!steps.counted && walk.repeat > 255)
        diagnostics_.fail(Rule::Repeat, text("%s with %u repeats", what, walk.repeat));
    asc_walk strided = walk;
    if (steps.contiguous) strided.src0_block = 1, strided.src0_repeat = 8;
    const View from = view_of(src, element, strided.src0_block, strided.src0_repeat, steps, what, "source");

    // Results of one repeat, and the distance between repeats in the destination, in elements.
    const bool pairs = unit == ASC_PER_REPEAT && op != ASC_REDUCE_SUM && order <= order_index_value;
    const uint32_t group = unit == ASC_PER_REPEAT ? steps.lanes : (unit == ASC_PER_BLOCK ? 32 / element : 2);
    const uint32_t results = (unit == ASC_PER_REPEAT ? 1 : steps.lanes / group) * (pairs ? 2 : 1);
    const uint64_t step = static_cast<uint64_t>(walk.dst_repeat) *
                          (unit == ASC_PER_REPEAT ? (pairs ? 2 : 1) : (unit == ASC_PER_BLOCK ? 8 : steps.lanes / 2));
    const uint64_t extent = ((steps.repeats - 1) * step + results) * element;
    const Bytes to = ub_bytes(dst, extent, unit == ASC_PER_PAIR ? 32 : element, what, "destination");
    if (dst.addr < end_of(from, steps) && from.addr < to.end) {
        WrittenBlocks written;
        for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
            const uint32_t lanes = steps.lanes_in(repeat);
            for (uint32_t lane = 0; lane < lanes; lane += from.per_block()) {
                if (written.has((from.addr + from.offset(repeat, lane)) / block_bytes))
                    fail_earlier_repeat(what, dst.addr, src.addr);
            }
            written.add_bytes(dst.addr + repeat * step * element, results * element);
        }
    }
    core.clocks.issue(ASC_V);
    touch(core, from, steps, false, what);
    touch(core, ASC_V, to, true, what);
    count(what);
    Instr record = vector_instr(Family::ReduceParts, op * 4 + unit, dtype, steps);
    record.operands = 1;
    record.operand[0] = {dst.addr, 1, walk.dst_repeat};
    add_operand(record, from);
    emit(record);
    if (!options_.compute) return;

    work(steps.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max(static_cast<uint32_t>(from.addr + from.extent(steps)), to.end);
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        Lanes lanes = read_lanes(from, steps, repeat, op, dtype, data, valid);
        uint8_t *out = data + dst.addr + repeat * step * element,
                *out_valid = valid + dst.addr + repeat * step * element;
        for (uint32_t part = 0; part * group < steps.lanes; ++part) {
            const uint32_t lane = part * group,
                           best = op == ASC_REDUCE_SUM ? 0 : first_best(lanes, lane, lane + group, op);
            const float value = op == ASC_REDUCE_SUM ? tree_sum(lanes.value + lane, group, dtype) : lanes.value[best];
            const bool index_first = pairs && order == order_index_value;
            uint8_t *at = out + part * (pairs ? 2 : 1) * element;
            if (order == order_only_index && op != ASC_REDUCE_SUM && unit == ASC_PER_REPEAT)
                put_index(at, dtype, best - lane);
            else put_value(at + (index_first ? element : 0), dtype, value);
            if (pairs) put_index(at + (index_first ? 0 : element), dtype, best - lane);
            const uint32_t width = (pairs ? 2 : 1) * element;
            std::memset(out_valid + part * width, lanes.all_valid(lane, lane + group), width);
        }
    }
}

}  // namespace sim

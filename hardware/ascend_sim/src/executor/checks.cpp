// Checks of a record's arguments: types, on-chip ranges, masks, repeats and overlaps.
#include "numerics/dtype.h"
#include "executor.h"

namespace sim {

uint32_t Executor::element_of(uint32_t dtype, uint32_t allowed, const char *what) const {
    const uint32_t bytes = bytes_of_dtype(dtype);
    if (bytes == 0) diagnostics_.fail(Rule::Protocol, text("%s with unknown element type %u", what, dtype));
    if (allowed & bit_of(dtype)) return bytes;
    std::string names;
    for (uint32_t code = 0; code < dtype_codes; ++code) {
        if (allowed & bit_of(code)) names += (names.empty() ? "" : ", ") + std::string(name_of_dtype(code));
    }
    diagnostics_.fail(Rule::Dtype, text("%s does not support %s, only %s", what, name_of_dtype(dtype), names.c_str()));
}

Bytes Executor::bytes_of(const asc_local &tensor, uint64_t bytes, const char *what, const char *role) const {
    const uint32_t capacity = capacity_of(tensor.space);
    if (capacity == 0) diagnostics_.fail(Rule::Protocol, text("%s in unknown memory %u", what, tensor.space));
    if (bytes > tensor.bytes) {
        diagnostics_.fail(Rule::OutOfBounds, text("%s touches %llu bytes of its %s tensor, which has %u bytes", what,
                                                  static_cast<unsigned long long>(bytes), role, tensor.bytes));
    }
    if (tensor.addr > capacity || bytes > capacity - tensor.addr) {
        diagnostics_.fail(
            Rule::OutOfBounds,
            text("%s touches %llu bytes at %s[0x%x], past the end of the memory (%u bytes)", what,
                 static_cast<unsigned long long>(bytes), name_of_space(tensor.space), tensor.addr, capacity));
    }
    return {tensor.space, tensor.addr, tensor.addr + static_cast<uint32_t>(bytes)};
}

Bytes Executor::ub_bytes(const asc_local &tensor, uint64_t bytes, uint32_t align, const char *what,
                         const char *role) const {
    const Bytes range = bytes_of(tensor, bytes, what, role);
    if (tensor.space != ASC_UB)
        diagnostics_.fail(Rule::Space, text("%s has its %s in %s", what, role, name_of_space(tensor.space)));
    if (tensor.addr % align) {
        diagnostics_.fail(Rule::Alignment, text("%s has its %s at UB[0x%x], which is not a multiple of %u bytes", what,
                                                role, tensor.addr, align));
    }
    return range;
}

namespace {
// A mask of the first `n` lanes.
void set_lanes(uint64_t mask[2], uint32_t n) {
    mask[0] = n >= 64 ? ~0ull : (1ull << n) - 1;
    mask[1] = n >= 128 ? ~0ull : (n > 64 ? (1ull << (n - 64)) - 1 : 0);
}
}  // namespace

Steps Executor::steps_of(Core &core, const asc_walk &walk, uint32_t element, const char *what) const {
    Steps steps;
    steps.lanes = std::min(256 / element, 128u);
    if (walk.form == ASC_COUNT) {
        if (walk.count > INT32_MAX)
            diagnostics_.fail(Rule::Repeat,
                              text("%s has the negative count %d", what, static_cast<int32_t>(walk.count)));
        steps.contiguous = steps.counted = true;
        steps.elements = walk.count;
        steps.repeats = static_cast<uint32_t>(divide_up(walk.count, steps.lanes));
        core.counter = false;  // the count form resets the mask register
        core.mask[0] = core.mask[1] = ~0ull;
        return steps;
    }
    if (walk.form != ASC_MASK && walk.form != ASC_MASK_REGISTER)
        diagnostics_.fail(Rule::Protocol, text("%s in an unknown form", what));
    if (core.counter) {
        const uint64_t number =
            walk.form == ASC_MASK_REGISTER ? core.mask[0] : (walk.count ? walk.count : walk.mask[0]);
        if (number > capacity_of(ASC_UB))
            diagnostics_.fail(Rule::Repeat,
                              text("%s counts %llu elements", what, static_cast<unsigned long long>(number)));
        steps.counted = true;
        steps.elements = number;
        steps.repeats = static_cast<uint32_t>(divide_up(number, steps.lanes));
        return steps;
    }
    if (walk.form == ASC_MASK) {
        core.mask[0] = walk.mask[0];
        core.mask[1] = walk.mask[1];
        if (walk.count > steps.lanes) {
            diagnostics_.fail(Rule::Repeat,
                              text("%s has mask %u, but a repeat has %u elements", what, walk.count, steps.lanes));
        }
    }
    uint64_t lanes[2];
    set_lanes(lanes, steps.lanes);
    if (walk.form == ASC_MASK && ((core.mask[0] & ~lanes[0]) || (core.mask[1] & ~lanes[1]))) {
        diagnostics_.fail(Rule::Repeat, text("%s has mask bits beyond the %u elements of a repeat", what, steps.lanes));
    }
    steps.mask[0] = core.mask[0] & lanes[0];
    steps.mask[1] = core.mask[1] & lanes[1];
    steps.repeats = walk.repeat;
    steps.elements =
        static_cast<uint64_t>(__builtin_popcountll(steps.mask[0]) + __builtin_popcountll(steps.mask[1])) * walk.repeat;
    return steps;
}

View Executor::view_of(const asc_local &tensor, uint32_t element, uint32_t block_stride, uint32_t repeat_stride,
                       const Steps &steps, const char *what, const char *role) const {
    View view;
    view.addr = tensor.addr;
    view.element = element;
    if (!steps.contiguous) {
        view.block_stride = block_stride;
        view.repeat_stride = repeat_stride;
    }
    ub_bytes(tensor, view.extent(steps), 32, what, role);
    return view;
}

void Executor::check_overlap(const View &dst, const View &src, const Steps &steps, bool accumulates,
                             const char *what) const {
    switch (overlap_of(dst, src, steps, accumulates)) {
        case Overlap::Allowed: return;
        case Overlap::EarlierRepeat: fail_earlier_repeat(what, dst.addr, src.addr);
        case Overlap::Partial: break;
    }
    diagnostics_.fail(
        Rule::Overlap,
        text("%s writes UB[0x%x..) over its source UB[0x%x..) without being the same range", what, dst.addr, src.addr));
}

void Executor::fail_earlier_repeat(const char *what, uint32_t dst, uint32_t src) const {
    diagnostics_.fail(
        Rule::Overlap,
        text("a repeat of %s reads from UB[0x%x..) what an earlier one wrote to UB[0x%x..)", what, src, dst),
        "one instruction has read its sources before its results are written: use one for each step");
}

Instr Executor::vector_instr(Family family, uint32_t op, uint32_t dtype, const Steps &steps) const {
    Instr record = instr(Kind::Vector, ASC_V);
    record.family = family;
    record.op = static_cast<uint16_t>(op);
    record.dtype = static_cast<uint8_t>(dtype);
    record.repeats = steps.repeats;
    record.elements = static_cast<uint32_t>(steps.elements);
    record.tail = steps.counted && steps.lanes && steps.elements % steps.lanes != 0;
    if (!steps.counted && family == Family::Vector) record.blocks = steps.blocks(std::max(1u, bytes_of_dtype(dtype)));
    return record;
}

}  // namespace sim

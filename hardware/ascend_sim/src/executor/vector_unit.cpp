// Element-wise instructions of the vector unit, in all call forms.
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

void Executor::vector(uint32_t op, uint32_t dtype, uint32_t src_dtype, asc_local dst, asc_local src0, asc_local src1,
                      uint64_t scalar, asc_walk walk, int32_t line) {
    Core &core = running(line);
    if (op >= ASC_VECTOR_OPS) diagnostics_.fail(Rule::Protocol, "an unknown vector instruction");
    const VectorOp &spec = vector_ops[op];
    const uint32_t element = element_of(dtype, spec.dtypes, spec.name);
    const uint32_t src_element = spec.sources ? element_of(src_dtype, spec.dtypes, spec.name) : element;
    const bool widens = (op == ASC_AXPY || op == ASC_MULADDDST) && dtype == ASC_F32 && src_dtype == ASC_F16;
    if (src_dtype != dtype && spec.sources && !widens) {
        diagnostics_.fail(Rule::Dtype, text("%s has a %s destination and a %s source", spec.name, name_of_dtype(dtype),
                                            name_of_dtype(src_dtype)));
    }
    const Steps steps = steps_of(core, walk, std::max(element, src_element), spec.name);
    if (!steps.contiguous && ((!steps.counted && walk.repeat > 255) || walk.dst_block == 0)) {
        diagnostics_.fail(Rule::Repeat, text("%s with %u repeats and destination block stride %u", spec.name,
                                             walk.repeat, walk.dst_block));
    }
    const View to = view_of(dst, element, walk.dst_block, walk.dst_repeat, steps, spec.name, "destination");
    View a, b;
    const bool adds_to_source = spec.accumulates && !spec.reads_dst;
    if (spec.reads_dst) check_overlap(to, to, steps, spec.accumulates, spec.name);
    core.clocks.issue(ASC_V);
    Instr record = vector_instr(Family::Vector, op, dtype, steps);
    add_operand(record, to);
    if (spec.sources > 0) {
        a = view_of(src0, src_element, walk.src0_block, walk.src0_repeat, steps, spec.name, "source");
        check_overlap(to, a, steps, adds_to_source, spec.name);
        touch(core, a, steps, false, spec.name);
        add_operand(record, a);
    }
    if (spec.sources > 1) {
        b = view_of(src1, src_element, walk.src1_block, walk.src1_repeat, steps, spec.name, "second source");
        // One source is accumulated, not both.
        check_overlap(to, b, steps, adds_to_source && to.addr != a.addr, spec.name);
        touch(core, b, steps, false, spec.name);
        add_operand(record, b);
    }
    touch(core, to, steps, true, spec.name);
    count(spec.name);
    emit(record);
    if (!options_.compute || steps.elements == 0) return;
    work(steps.elements);
    const Kernel kernel = vector_kernel(op, dtype, src_dtype);
    if (!kernel) diagnostics_.fail(Rule::Protocol, text("%s has no kernel for %s", spec.name, name_of_dtype(dtype)));
    run_elementwise(core.memory(ASC_UB), steps, to, spec.sources > 0 ? &a : nullptr, spec.sources > 1 ? &b : nullptr,
                    spec.reads_dst, [&](uint8_t *d, const uint8_t *x, const uint8_t *y, size_t n) {
                        kernel(d, spec.sources > 0 ? x : nullptr, spec.sources > 1 ? y : nullptr, scalar, n);
                    });
}

void Executor::mask_mode(uint32_t counter, int32_t line) {
    Core &core = running(line);
    if (counter > 1) diagnostics_.fail(Rule::Protocol, "an unknown mask mode");
    core.counter = counter != 0;
    overhead(Call::MaskSet);
}

void Executor::mask_set(uint64_t high, uint64_t low, int32_t line) {
    Core &core = running(line);
    core.mask[0] = low;
    core.mask[1] = high;
    overhead(Call::MaskSet);
}

}  // namespace sim

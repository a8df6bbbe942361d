// High-level vector functions: element-wise, with a temporary buffer.
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/library_numerics.h"

namespace sim {

namespace {
enum { reuses_source = 1, second_is_scalar = 2, first_is_scalar = 4 };
}

// Checks and claims the temporary buffer, which discards its contents. Returns the part that the function uses.
Bytes Executor::take_tmp(Core &core, const asc_local &tmp, uint64_t needed, const Bytes *others, size_t n,
                         const char *what) {
    if (needed == 0) return {ASC_UB, 0, 0};
    if (tmp.bytes < needed) {
        diagnostics_.fail(Rule::TmpBuffer, text("%s needs %llu bytes of temporary space in UB, there are %u", what,
                                                static_cast<unsigned long long>(needed), tmp.bytes));
    }
    const Bytes range = ub_bytes(tmp, needed, 32, what, "temporary buffer");
    for (size_t i = 0; i < n; ++i) {
        if (others[i].begin < range.end && range.begin < others[i].end) {
            diagnostics_.fail(Rule::Overlap, text("%s has its temporary buffer over an operand", what),
                              "give it a buffer of its own");
        }
    }
    touch(core, ASC_V, range, true, what);
    if (options_.compute) core.memory(ASC_UB).forget(range.begin, range.end);
    return range;
}

void Executor::library(uint32_t op, uint32_t dtype, asc_local dst, asc_local src0, asc_local src1, asc_local tmp,
                       uint64_t scalar, uint32_t flags, uint32_t elements, int32_t line) {
    Core &core = running(line);
    if (op >= ASC_LIBRARY_OPS || flags > 7) diagnostics_.fail(Rule::Protocol, "an unknown library function");
    const LibraryOp &spec = library_ops[op];
    const uint32_t element = element_of(dtype, spec.dtypes, spec.name);
    if ((flags & (second_is_scalar | first_is_scalar)) && (op != ASC_POWER || (flags & 6) == 6))
        diagnostics_.fail(Rule::Protocol, "a scalar operand");
    Steps steps;
    steps.contiguous = steps.counted = true;
    steps.lanes = 256 / element;
    steps.elements = elements;
    steps.repeats = static_cast<uint32_t>(divide_up(elements, steps.lanes));
    if (elements == 0) return;
    const bool has_first = !(flags & first_is_scalar), has_second = spec.sources > 1 && !(flags & second_is_scalar);
    const View to = view_of(dst, element, 1, 8, steps, spec.name, "destination");
    const View a = has_first ? view_of(src0, element, 1, 8, steps, spec.name, "source") : to;
    const View b = has_second ? view_of(src1, element, 1, 8, steps, spec.name, "second source") : to;
    check_overlap(to, a, steps, false, spec.name);
    check_overlap(to, b, steps, false, spec.name);
    core.clocks.issue(ASC_V);
    const Bytes used[] = {
        {ASC_UB, to.addr, end_of(to, steps)}, {ASC_UB, a.addr, end_of(a, steps)}, {ASC_UB, b.addr, end_of(b, steps)}};
    take_tmp(core, tmp, static_cast<uint64_t>(spec.tmp_repeats) * 256 * (element == 2 ? 2 : 1), used, 3, spec.name);
    if (has_first) touch(core, a, steps, false, spec.name);
    if (has_second) touch(core, b, steps, false, spec.name);
    touch(core, to, steps, true, spec.name);
    count(spec.name);
    Instr record = vector_instr(Family::Library, op, dtype, steps);
    add_operand(record, to);
    if (has_first) add_operand(record, a);
    if (has_second) add_operand(record, b);
    emit(record);
    if (!options_.compute) return;
    work(steps.elements);
    const Kernel kernel = library_kernel(op, dtype);
    if (!kernel) diagnostics_.fail(Rule::Protocol, text("%s has no kernel for %s", spec.name, name_of_dtype(dtype)));
    std::vector<uint8_t> constant;
    if (flags & (second_is_scalar | first_is_scalar)) {
        constant.resize(static_cast<size_t>(elements) * element);
        for (size_t i = 0; i < elements; ++i) std::memcpy(&constant[i * element], &scalar, element);
    }
    run_elementwise(core.memory(ASC_UB), steps, to, has_first ? &a : nullptr, has_second ? &b : nullptr, false,
                    [&](uint8_t *d, const uint8_t *x, const uint8_t *y, size_t n) {
                        const uint8_t *first = has_first ? x : constant.data();
                        const uint8_t *second = flags & second_is_scalar ? constant.data() : (has_second ? y : nullptr);
                        kernel(d, first, second, scalar, n);
                    });
}

}  // namespace sim

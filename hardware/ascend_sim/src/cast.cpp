// Cast in all call forms.
#include "conversions.h"
#include "dtype.h"
#include "executor.h"
#include "numerics.h"

namespace sim {

namespace {
constexpr const char *round_names[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                       "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
constexpr uint32_t any_dtype = 0x0fff;
}  // namespace

void Executor::cast(uint32_t dst_dtype, uint32_t src_dtype, asc_local dst, asc_local src, uint32_t round, asc_walk walk,
                    int32_t line) {
    Core &core = running(line);
    const uint32_t to_element = element_of(dst_dtype, any_dtype, "Cast"),
                   from_element = element_of(src_dtype, any_dtype, "Cast");
    if (round > ASC_ODD) diagnostics_.fail(Rule::Protocol, "Cast in an unknown rounding mode");
    const uint32_t modes = cast_modes(dst_dtype, src_dtype);
    if (!(modes >> round & 1)) {
        std::string names;
        for (uint32_t mode = 0; mode <= ASC_ODD; ++mode) {
            if (modes >> mode & 1) names += std::string(names.empty() ? "" : ", ") + round_names[mode];
        }
        diagnostics_.fail(
            Rule::CastMode,
            text("Cast from %s to %s with %s", name_of_dtype(src_dtype), name_of_dtype(dst_dtype), round_names[round]),
            modes ? "this pair takes " + names : std::string("there is no such Cast, go through float or half"));
    }
    const Steps steps = steps_of(core, walk, std::max(to_element, from_element), "Cast");
    if (!steps.contiguous && ((!steps.counted && walk.repeat > 255) || walk.dst_block == 0)) {
        diagnostics_.fail(Rule::Repeat,
                          text("Cast with %u repeats and destination block stride %u", walk.repeat, walk.dst_block));
    }
    const View to = view_of(dst, to_element, walk.dst_block, walk.dst_repeat, steps, "Cast", "destination");
    const View from = view_of(src, from_element, walk.src0_block, walk.src0_repeat, steps, "Cast", "source");
    check_overlap(to, from, steps, false, "Cast");
    core.clocks.issue(ASC_V);
    touch(core, from, steps, false, "Cast");
    touch(core, to, steps, true, "Cast");
    count("Cast");
    Instr record = vector_instr(Family::Cast, round, dst_dtype, steps);
    record.a = src_dtype;
    add_operand(record, to);
    add_operand(record, from);
    emit(record);
    if (!options_.compute) return;
    work(steps.elements);
    run_elementwise(core.memory(ASC_UB), steps, to, &from, nullptr, false,
                    [&](uint8_t *d, const uint8_t *s, const uint8_t *, size_t n) {
                        convert(dst_dtype, src_dtype, round, d, s, n);
                    });
}

}  // namespace sim

// Cast in all call forms.
#include "numerics/conversions.h"
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr const char *round_names[] = {"CAST_NONE",  "CAST_RINT",  "CAST_FLOOR", "CAST_CEIL",
                                       "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"};
constexpr uint32_t any_dtype = 0x0fff, nibbles_per_block = 64;

// Position of a lane's four bits, from the start of the operand.
uint64_t nibble_place(const Steps &steps, uint32_t repeat, uint32_t lane, uint32_t block_stride,
                      uint32_t repeat_stride) {
    if (steps.contiguous) return (static_cast<uint64_t>(repeat) * steps.lanes + lane) / 2;
    return (static_cast<uint64_t>(repeat) * repeat_stride +
            lane / nibbles_per_block * static_cast<uint64_t>(block_stride)) *
               32 +
           lane % nibbles_per_block / 2;
}
}  // namespace

void Executor::check_cast(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round) const {
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
}

void Executor::cast(uint32_t dst_dtype, uint32_t src_dtype, asc_local dst, asc_local src, uint32_t round, asc_walk walk,
                    int32_t line) {
    Core &core = running(line);
    if (dst_dtype == ASC_I4 || src_dtype == ASC_I4) {
        check_cast(dst_dtype, src_dtype, round);
        return cast_packed(core, dst_dtype == ASC_I4, dst, src, round, walk);
    }
    const uint32_t to_element = element_of(dst_dtype, any_dtype, "Cast"),
                   from_element = element_of(src_dtype, any_dtype, "Cast");
    check_cast(dst_dtype, src_dtype, round);
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

// half to int4 (packs) or back. Two int4 elements share a byte.
void Executor::cast_packed(Core &core, bool packs, const asc_local &dst, const asc_local &src, uint32_t round,
                           const asc_walk &walk) {
    const Steps steps = steps_of(core, walk, 2, "Cast");
    if (!steps.contiguous && ((!steps.counted && walk.repeat > 255) || walk.dst_block == 0)) {
        diagnostics_.fail(Rule::Repeat,
                          text("Cast with %u repeats and destination block stride %u", walk.repeat, walk.dst_block));
    }
    if (steps.elements == 0) return;
    const asc_local &wide = packs ? src : dst, &narrow = packs ? dst : src;
    const uint32_t wide_block = packs ? walk.src0_block : walk.dst_block,
                   wide_repeat = packs ? walk.src0_repeat : walk.dst_repeat;
    const uint32_t block = packs ? walk.dst_block : walk.src0_block,
                   repeats = packs ? walk.dst_repeat : walk.src0_repeat;
    const View view = view_of(wide, 2, wide_block, wide_repeat, steps, "Cast", packs ? "source" : "destination");
    uint64_t reach = 0;
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        const uint32_t lanes = steps.lanes_in(repeat);
        if (lanes) reach = std::max(reach, nibble_place(steps, repeat, lanes - 1, block, repeats) + 1);
    }
    const Bytes packed = ub_bytes(narrow, reach, 32, "Cast", packs ? "destination" : "source");
    if (view.addr < packed.end && packed.begin < end_of(view, steps))
        diagnostics_.fail(Rule::Overlap, "Cast between half and int4 writes over its source");
    core.clocks.issue(ASC_V);
    touch(core, view, steps, !packs, "Cast");
    touch(core, ASC_V, packed, packs, "Cast");
    count("Cast");
    Instr record = vector_instr(Family::Cast, round, ASC_F16, steps);
    record.a = packs ? ASC_F16 : ASC_I4;
    add_operand(record, view);
    emit(record);
    if (!options_.compute) return;
    work(steps.elements);
    LocalMemory &ub = core.memory(ASC_UB);
    const uint32_t used = std::max(end_of(view, steps), packed.end);
    uint8_t *data = ub.data(0, used), *valid = ub.valid(0, used);
    for (uint32_t repeat = 0; repeat < steps.repeats; ++repeat) {
        for (uint32_t lane = 0, lanes = steps.lanes_in(repeat); lane < lanes; ++lane) {
            if (!steps.active(lane)) continue;
            const uint64_t index = static_cast<uint64_t>(repeat) * steps.lanes + lane;
            const uint64_t half = view.addr + (steps.contiguous ? index * 2 : view.offset(repeat, lane));
            const uint64_t byte = packed.begin + nibble_place(steps, repeat, lane, block, repeats);
            const uint32_t shift = lane % 2 * 4;
            if (packs) {
                const uint8_t bits = four_bits(value_of(ASC_F16, data + half), round);
                data[byte] = static_cast<uint8_t>((data[byte] & ~(15 << shift)) | bits << shift);
                valid[byte] = (shift == 0 || valid[byte]) && !std::memchr(valid + half, 0, 2);
            } else {
                const int32_t number = static_cast<int32_t>((data[byte] >> shift & 15) ^ 8) - 8;
                put_value(ASC_F16, data + half, number, ASC_NONE);
                std::memset(valid + half, valid[byte], 2);
            }
        }
    }
}

}  // namespace sim

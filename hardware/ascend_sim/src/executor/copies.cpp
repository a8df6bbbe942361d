// Copies between global and on-chip memory (MTE2, MTE3) and inside the core.
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t max_bursts = 4095, max_units = 65535, max_exact_bytes = 2097151;
constexpr uint32_t copyable = 0x0fff;  // every type whose elements are whole bytes
constexpr uint32_t atomic_types = numbers | bit_of(ASC_BF16) | bit_of(ASC_I8);
}  // namespace

namespace {
// Layout of a padded burst: padding before `data`, the data, padding up to `end`, and the rest of the last block.
struct Padded { uint32_t data, stop, end, filled; };

// Padding gets its value, if one is set. The rest of a block without padding repeats the burst's first element, as on
// hardware; otherwise it is undefined.
void fill_up(uint8_t *data, uint8_t *valid, uint32_t element, const Padded &at, const uint64_t *value) {
    const bool repeats_first = at.data == 0 && at.end == at.stop;
    const auto fill = [&](uint32_t place, bool padding) {
        if (padding && value) std::memcpy(data + place, value, element);
        if (repeats_first) std::memcpy(data + place, data, element);
        std::memset(valid + place, repeats_first ? valid[0] : padding && value, element);
    };
    for (uint32_t place = 0; place < at.data; place += element) fill(place, true);
    for (uint32_t place = at.stop; place < at.filled; place += element) fill(place, place < at.end);
}
}  // namespace

// ---- checks shared by all copies -----------------------------------------------------------------------------------

void Executor::check_burst(const asc_burst &burst, uint64_t global_gap, uint64_t local_gap, uint32_t element,
                           uint32_t exact, const char *what) const {
    if (burst.count > max_bursts)
        diagnostics_.fail(Rule::CopyRange, text("%s with blockCount %u, at most %u", what, burst.count, max_bursts));
    if (local_gap % 32 || local_gap / 32 > max_units || global_gap > UINT32_MAX) {
        diagnostics_.fail(Rule::CopyRange, text("%s with strides of %llu bytes in global memory and %llu on chip", what,
                                                static_cast<unsigned long long>(global_gap),
                                                static_cast<unsigned long long>(local_gap)));
    }
    if (exact) {
        if (burst.bytes > max_exact_bytes)
            diagnostics_.fail(Rule::CopyRange,
                              text("%s with blockLen %u, at most %u", what, burst.bytes, max_exact_bytes));
        if (burst.bytes % element)
            diagnostics_.fail(Rule::CopyRange,
                              text("%s with blockLen %u, not a multiple of the element", what, burst.bytes));
        return;
    }
}

// DataCopy moves whole blocks: what is left over of a burst stays where it is.
bool Executor::drop_part(asc_burst &burst, uint32_t exact, const char *what) {
    const uint32_t part = exact ? 0 : burst.bytes % 32;
    if (part == 0) return false;
    diagnostics_.suspect(Rule::CopySize,
                         text("%s moves %u bytes, and hardware drops the last %u", what, burst.bytes, part));
    burst.bytes -= part;
    return true;
}

// Checks bounds, coverage, races and order of a copy's global side. Returns the tensor and sets the position of `rows`.
uint32_t Executor::touch_global(Core &core, uint32_t pipe, asc_global address, Rows &rows, uint32_t element, bool write,
                                uint32_t atomic, const char *what) {
    rows.begin = 0;
    const GlobalBytes all = global_.locate(address, rows.end(), write, what);
    if (address % element) {
        diagnostics_.fail(Rule::Alignment,
                          text("%s at global address 0x%llx, not a multiple of its element", what,
                               static_cast<unsigned long long>(address)),
                          "global addresses are multiples of the element size");
    }
    rows.begin = all.tensor * ASC_GM_STRIDE + all.begin;
    if (rows.pitch == rows.bytes) rows = {rows.begin, rows.bytes * rows.count, 1, rows.bytes * rows.count};
    order_global(core, pipe, all.tensor, rows, write, what);
    warn_of_cache(core, all, what);
    for (uint64_t row = 0; row < rows.count; ++row) {
        const uint64_t begin = all.begin + row * rows.pitch;
        const GlobalBytes range = {all.tensor, begin, begin + rows.bytes};
        if (write) {
            global_.written_by(range, core.id, pipe, atomic, what);
        } else {
            global_.read_by(range, core.id, pipe, what);
        }
    }
    return all.tensor;
}

// Checks `count` on-chip ranges for hazards.
void Executor::touch_rows(Core &core, uint32_t pipe, const asc_local &local, uint64_t bytes, uint64_t pitch,
                          uint32_t count, bool write, const char *what) {
    if (count == 1 || pitch == round_up(bytes, 32)) {
        touch(core, pipe, {local.space, local.addr, static_cast<uint32_t>(local.addr + (count - 1) * pitch + bytes)},
              write, what);
        return;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t begin = local.addr + static_cast<uint32_t>(i * pitch);
        touch(core, pipe, {local.space, begin, begin + static_cast<uint32_t>(bytes)}, write, what);
    }
}

void Executor::emit_copy(const Core &core, Kind kind, uint32_t pipe, const asc_local &local, asc_global global,
                         const Rows &rows, uint32_t dtype, uint32_t atomic) {
    Instr record = instr(kind, pipe);
    record.dtype = static_cast<uint8_t>(dtype);
    record.space = static_cast<uint8_t>(local.space);
    record.gm = global;
    record.bursts = static_cast<uint32_t>(rows.count);
    record.burst_bytes = static_cast<uint32_t>(rows.bytes);
    record.gm_gap = rows.count > 1 ? rows.pitch - rows.bytes : 0;
    record.operands = 1;
    record.operand[0].addr = local.addr;
    record.atomic = static_cast<uint8_t>(atomic);
    const uint64_t tensor = (global - ASC_GM_BASE) / ASC_GM_STRIDE;
    record.bypass = tensor < 64 && (core.bypassing >> tensor & 1);
    emit(record);
}

// A hint for an address outside every tensor has no effect, as on the device.
void Executor::cache_hint(asc_global address, uint32_t bypass, int32_t line) {
    Core &core = running(line);
    const uint64_t tensor = (address - ASC_GM_BASE) / ASC_GM_STRIDE;
    if (tensor >= 64) return;
    core.bypassing = (core.bypassing & ~(1ull << tensor)) | uint64_t{bypass != 0} << tensor;
    overhead(Call::Flag);
}

// ---- global -> on-chip ---------------------------------------------------------------------------------------------

void Executor::copy_in(asc_local dst, asc_global src, asc_burst burst, uint32_t dtype, uint32_t exact, uint32_t pad,
                       uint32_t pad_left, uint32_t pad_right, uint64_t pad_bits, int32_t line) {
    Core &core = running(line);
    const char *what = exact ? "DataCopyPad from global memory" : "DataCopy from global memory";
    const uint32_t element = element_of(dtype, copyable, what);
    if (dst.space != ASC_UB && dst.space != ASC_L1)
        diagnostics_.fail(Rule::Space, text("%s into %s", what, name_of_space(dst.space)));
    check_burst(burst, burst.src_gap, burst.dst_gap, element, exact, what);
    drop_part(burst, exact, what);
    if (pad_left > 32 / element || pad_right > 32 / element) {
        diagnostics_.fail(Rule::CopyRange,
                          text("%s pads %u elements left and %u right, at most 32 bytes", what, pad_left, pad_right));
    }
    if (element == 8 && pad && pad_bits)
        diagnostics_.fail(Rule::CopyRange, text("%s pads 64-bit elements with other than 0", what));
    if (burst.count == 0 || burst.bytes == 0) return;

    const uint32_t left = pad_left * element, right = pad_right * element;
    const uint64_t filled = round_up(left + static_cast<uint64_t>(burst.bytes) + right, 32),
                   pitch = filled + burst.dst_gap;
    bytes_of(dst, (burst.count - 1) * pitch + filled, what, "destination");
    if (dst.addr % 32)
        diagnostics_.fail(Rule::Alignment,
                          text("%s has its destination at %s[0x%x]", what, name_of_space(dst.space), dst.addr));
    core.clocks.issue(ASC_MTE2);
    const Rows bursts = {0, burst.bytes, burst.count, burst.bytes + burst.src_gap};
    Rows rows = bursts;
    const uint32_t tensor = touch_global(core, ASC_MTE2, src, rows, element, false, 0, what);
    touch_rows(core, ASC_MTE2, dst, filled, pitch, burst.count, true, what);
    count(exact ? "DataCopyPad in" : "DataCopy in");
    emit_copy(core, Kind::CopyIn, ASC_MTE2, dst, src, bursts, dtype, 0);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(burst.count) * filled / element);
    LocalMemory &memory = core.memory(dst.space);
    const uint64_t first = src - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
    const bool padded = pad || core.pad_set;
    const uint64_t filler = pad ? pad_bits : core.pad_bits;
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint32_t begin = dst.addr + static_cast<uint32_t>(i * pitch), end = begin + static_cast<uint32_t>(filled);
        uint8_t *data = memory.data(begin, end), *valid = memory.valid(begin, end);
        const uint64_t from = first + i * (burst.bytes + burst.src_gap);
        global_.load({tensor, from, from + burst.bytes}, data + left, valid + left);
        fill_up(data, valid, element,
                {left, left + burst.bytes, left + burst.bytes + right, static_cast<uint32_t>(filled)},
                padded ? &filler : nullptr);
    }
}

void Executor::set_pad_value(uint32_t dtype, uint64_t bits, int32_t line) {
    Core &core = running(line);
    element_of(dtype, copyable, "SetPadValue");
    core.pad_set = true;
    core.pad_bits = bits;
    overhead(Call::MaskSet);
}

void Executor::copy_nd2nz(asc_local dst, asc_global src, asc_nd2nz shape, uint32_t dtype, int32_t line) {
    Core &core = running(line);
    const char *what = "DataCopy with Nd2NzParams";
    const uint32_t element = element_of(dtype, copyable, what), c0 = 32 / element;
    if (dst.space != ASC_L1)
        diagnostics_.fail(Rule::Space, text("%s into %s", what, name_of_space(dst.space)),
                          "the destination is in A1 or B1");
    if (shape.nd_num > max_bursts || shape.n_value > 16384 || shape.d_value > max_units ||
        shape.dst_c0_stride > 16384 || shape.dst_n_stride > 16384 || shape.dst_nz_stride > max_units ||
        shape.src_d_value > max_units || shape.src_nd_stride > (1u << 26)) {
        diagnostics_.fail(Rule::CopyRange, text("%s has fields out of range", what));
    }
    if (!shape.nd_num || !shape.n_value || !shape.d_value) return;
    if (dst.addr % 32) diagnostics_.fail(Rule::Alignment, text("%s has its destination at L1[0x%x]", what, dst.addr));
    const uint64_t columns = divide_up(shape.d_value, c0);
    const uint64_t matrix =
        ((columns - 1) * shape.dst_c0_stride + static_cast<uint64_t>(shape.n_value - 1) * shape.dst_n_stride) * 32 + 32;
    const uint64_t extent = static_cast<uint64_t>(shape.nd_num - 1) * shape.dst_nz_stride * element + matrix;
    const Bytes range = bytes_of(dst, extent, what, "destination");
    core.clocks.issue(ASC_MTE2);
    const uint64_t bytes = static_cast<uint64_t>(shape.d_value) * element,
                   pitch = static_cast<uint64_t>(std::max(shape.src_d_value, shape.d_value)) * element;
    uint32_t tensor = 0;
    touch(core, ASC_MTE2, range, true, what);
    count("DataCopy nd2nz");
    for (uint32_t nd = 0; nd < shape.nd_num; ++nd) {
        Rows rows = {0, bytes, shape.n_value, pitch};
        const asc_global from = src + static_cast<uint64_t>(nd) * shape.src_nd_stride * element;
        tensor = touch_global(core, ASC_MTE2, from, rows, element, false, 0, what);
        emit_copy(core, Kind::CopyIn, ASC_MTE2, dst, from, {0, bytes, shape.n_value, pitch}, dtype, 0);
    }
    if (!options_.compute) return;
    work(static_cast<uint64_t>(shape.nd_num) * shape.n_value * round_up(shape.d_value, c0));
    uint8_t *data = core.memory(ASC_L1).data(dst.addr, range.end),
            *valid = core.memory(ASC_L1).valid(dst.addr, range.end);
    const uint64_t first = src - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
    for (uint64_t nd = 0; nd < shape.nd_num; ++nd) {
        for (uint64_t n = 0; n < shape.n_value; ++n) {
            const uint64_t row =
                first + (nd * shape.src_nd_stride + n * std::max(shape.src_d_value, shape.d_value)) * element;
            for (uint64_t d = 0; d < shape.d_value; d += c0) {
                const uint64_t to =
                    nd * shape.dst_nz_stride * element + (d / c0 * shape.dst_c0_stride + n * shape.dst_n_stride) * 32;
                const uint64_t bytes = std::min<uint64_t>(c0, shape.d_value - d) * element;
                if (to + 32 > extent) continue;
                std::memset(data + to, 0, 32);
                std::memset(valid + to, 1, 32);
                global_.load({tensor, row + d * element, row + d * element + bytes}, data + to, valid + to);
            }
        }
    }
}

// ---- on-chip -> global ---------------------------------------------------------------------------------------------

void Executor::set_atomic(uint32_t mode, uint32_t dtype, int32_t line) {
    Core &core = running(line);
    if (mode > 3) diagnostics_.fail(Rule::Protocol, "an unknown atomic");
    if (mode) element_of(dtype, atomic_types, "SetAtomic");
    core.atomic = mode;
    core.atomic_dtype = dtype;
    overhead(Call::MaskSet);
}

void Executor::combine_atomically(const GlobalBytes &range, uint8_t *data, uint8_t *valid, uint32_t mode,
                                  uint32_t dtype) const {
    const size_t bytes = range.end - range.begin;
    std::vector<uint8_t> old(bytes), old_valid(bytes);
    global_.load(range, old.data(), old_valid.data());
    combine(mode, dtype, data, old.data(), bytes / bytes_of_dtype(dtype));
    for (size_t i = 0; i < bytes; ++i) valid[i] &= old_valid[i];
}

void Executor::copy_out(asc_global dst, asc_local src, asc_burst burst, uint32_t dtype, uint32_t exact, int32_t line) {
    Core &core = running(line);
    const char *what = exact ? "DataCopyPad to global memory" : "DataCopy to global memory";
    const uint32_t element = element_of(dtype, copyable, what);
    if (src.space != ASC_UB && src.space != ASC_L1)
        diagnostics_.fail(Rule::Space, text("%s from %s", what, name_of_space(src.space)));
    check_burst(burst, burst.dst_gap, burst.src_gap, element, exact, what);
    dropped_output_ |= drop_part(burst, exact, what);
    if (burst.count == 0 || burst.bytes == 0) return;
    if (core.atomic && core.atomic_dtype != dtype) {
        diagnostics_.fail(Rule::Atomic, text("%s of %s while SetAtomic named %s", what, name_of_dtype(dtype),
                                             name_of_dtype(core.atomic_dtype)));
    }
    const uint64_t pitch = round_up(burst.bytes, 32) + burst.src_gap;
    bytes_of(src, (burst.count - 1) * pitch + burst.bytes, what, "source");
    if (src.addr % 32)
        diagnostics_.fail(Rule::Alignment,
                          text("%s has its source at %s[0x%x]", what, name_of_space(src.space), src.addr));
    core.clocks.issue(ASC_MTE3);
    touch_rows(core, ASC_MTE3, src, burst.bytes, pitch, burst.count, false, what);
    const Rows bursts = {0, burst.bytes, burst.count, burst.bytes + burst.dst_gap};
    Rows rows = bursts;
    const uint32_t tensor = touch_global(core, ASC_MTE3, dst, rows, element, true, core.atomic_kind(), what);
    count(exact ? "DataCopyPad out" : "DataCopy out");
    emit_copy(core, Kind::CopyOut, ASC_MTE3, src, dst, bursts, dtype, core.atomic);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(burst.count) * burst.bytes / element);
    LocalMemory &memory = core.memory(src.space);
    const uint64_t first = dst - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
    std::vector<uint8_t> data, valid;
    for (uint32_t i = 0; i < burst.count; ++i) {
        const uint32_t begin = src.addr + static_cast<uint32_t>(i * pitch), end = begin + burst.bytes;
        const uint64_t to = first + i * (burst.bytes + burst.dst_gap);
        const GlobalBytes range = {tensor, to, to + burst.bytes};
        if (!core.atomic) {
            global_.store(range, memory.data(begin, end), memory.valid(begin, end));
            continue;
        }
        data.assign(memory.data(begin, end), memory.data(begin, end) + burst.bytes);
        valid.assign(memory.valid(begin, end), memory.valid(begin, end) + burst.bytes);
        combine_atomically(range, data.data(), valid.data(), core.atomic, dtype);
        global_.store(range, data.data(), valid.data());
    }
}

// ---- inside the core -----------------------------------------------------------------------------------------------

void Executor::copy_local(asc_local dst, asc_local src, asc_burst burst, uint32_t dtype, int32_t line) {
    Core &core = running(line);
    const char *what = "DataCopy between local tensors";
    const uint32_t element = element_of(dtype, copyable, what);
    check_burst(burst, burst.src_gap, burst.dst_gap, element, false, what);
    drop_part(burst, false, what);
    if (burst.src_gap % 32 || burst.src_gap / 32 > max_units)
        diagnostics_.fail(Rule::CopyRange, text("%s with a source stride out of range", what));
    if (burst.count == 0 || burst.bytes == 0) return;
    const uint64_t src_pitch = burst.bytes + burst.src_gap, dst_pitch = burst.bytes + burst.dst_gap;
    const Bytes from = bytes_of(src, (burst.count - 1) * src_pitch + burst.bytes, what, "source");
    const Bytes to = bytes_of(dst, (burst.count - 1) * dst_pitch + burst.bytes, what, "destination");
    const bool inside_ub = src.space == ASC_UB && dst.space == ASC_UB;
    const bool to_tables = src.space == ASC_L1 && (dst.space == ASC_BT || dst.space == ASC_FB);
    if (!inside_ub && !to_tables) {
        diagnostics_.fail(Rule::Space,
                          text("%s from %s to %s", what, name_of_space(src.space), name_of_space(dst.space)),
                          "vector cores have UB, cube cores have L1, and no path joins them: go through global memory");
    }
    if (src.addr % 32 || dst.addr % 32)
        diagnostics_.fail(Rule::Alignment, text("%s at 0x%x and 0x%x", what, src.addr, dst.addr));
    if (inside_ub && from.begin < to.end && to.begin < from.end && from.begin != to.begin) {
        diagnostics_.fail(Rule::Overlap, text("%s onto itself", what));
    }
    if (inside_ub && from.begin == to.begin && dst_pitch > src_pitch) {
        WrittenBlocks written;
        for (uint64_t i = 0; i < burst.count; ++i) {
            if (written.has_bytes(src.addr + i * src_pitch, burst.bytes)) fail_earlier_repeat(what, dst.addr, src.addr);
            written.add_bytes(dst.addr + i * dst_pitch, burst.bytes);
        }
    }
    const uint32_t pipe = inside_ub ? ASC_V : ASC_MTE1;
    core.clocks.issue(pipe);
    touch_rows(core, pipe, src, burst.bytes, src_pitch, burst.count, false, what);
    touch_rows(core, pipe, dst, burst.bytes, dst_pitch, burst.count, true, what);
    count("DataCopy local");
    Instr record = instr(inside_ub ? Kind::Vector : Kind::Load, pipe);
    record.family = Family::CopyLocal;
    record.dtype = static_cast<uint8_t>(dtype);
    record.space = static_cast<uint8_t>(dst.space);
    record.elements = burst.count * (burst.bytes / element);
    record.bursts = burst.count;
    record.burst_bytes = burst.bytes;
    record.repeats = burst.count * static_cast<uint32_t>(divide_up(burst.bytes, 256));
    record.operands = 2;
    record.operand[0].addr = dst.addr;
    record.operand[1].addr = src.addr;
    emit(record);
    if (!options_.compute) return;
    work(record.elements);
    LocalMemory &source = core.memory(src.space), &target = core.memory(dst.space);
    for (uint64_t i = 0; i < burst.count; ++i) {
        const uint32_t a = static_cast<uint32_t>(src.addr + i * src_pitch),
                       b = static_cast<uint32_t>(dst.addr + i * dst_pitch);
        source.data(a, a + burst.bytes);
        std::memmove(target.data(b, b + burst.bytes), source.data(a, a + burst.bytes), burst.bytes);
        std::memmove(target.valid(b, b + burst.bytes), source.valid(a, a + burst.bytes), burst.bytes);
    }
}

}  // namespace sim

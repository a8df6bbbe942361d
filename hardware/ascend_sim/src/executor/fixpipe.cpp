// Copies out of L0C: Fixpipe to global memory as rows or fractals, or to L1 as fractals.
#include "numerics/conversions.h"
#include "numerics/dtype.h"
#include "executor.h"
#include "fractals.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t max_rows = 8192, max_columns = 4095, matrix_bytes = 1024;

// A scale is passed as 64 bits: a float without its last 13 bits, and nine bits of offset.
struct Scale {
    float factor = 1;
    int32_t offset = 0;
};

Scale scale_of(uint64_t bits) {
    const uint32_t nine = static_cast<uint32_t>(bits >> 37 & 0x1ff);
    return {float_of(static_cast<uint32_t>(bits) & 0xffffe000u), static_cast<int32_t>(nine ^ 0x100) - 0x100};
}
}  // namespace

// One checked Fixpipe: where its elements come from and how they are converted.
struct Executor::Fix {
    asc_fix_shape shape;
    uint32_t dst_dtype, src_dtype, element, width;  // width: columns of a fractal in the result
    Bytes from, numbers;                            // in L0C, and the scales (empty if there are none)
    uint64_t scale;
    const uint8_t *data = nullptr, *valid = nullptr, *scales = nullptr, *scales_valid = nullptr;

    uint64_t columns_of_fractals() const { return divide_up(shape.n, width); }
    void put(uint64_t matrix, uint64_t i, uint64_t j, uint8_t *to, uint8_t *to_valid) const {
        const uint64_t at = matrix * shape.src_nd_stride * matrix_bytes + result_place(i, j, shape.src_stride);
        bool good = !std::memchr(valid + at, 0, 4);
        uint64_t bits = scale;
        if (scales) {
            std::memcpy(&bits, scales + j * 8, 8);
            good = good && !std::memchr(scales_valid + j * 8, 0, 8);
        }
        double value = value_of(src_dtype, data + at);
        if (shape.relu && value < 0) value = 0;
        if (shape.quant) {
            const Scale by = scale_of(bits);
            value = static_cast<double>(static_cast<float>(value) * by.factor) +
                    (bytes_of_dtype(dst_dtype) == 1 ? by.offset : 0);
        }
        put_value(dst_dtype, to, value, ASC_RINT);
        std::memset(to_valid, good, element);
    }
};

void Executor::fix_registers(uint32_t which, uint64_t number, uint32_t nd_num, uint32_t src_nd_stride,
                             uint32_t dst_nd_stride, asc_local scales, int32_t line) {
    Core &core = running(line);
    switch (which) {
        case 0: core.fix.scale = number; break;
        case 1:
            core.fix.nd_num = nd_num;
            core.fix.src_nd_stride = src_nd_stride;
            core.fix.dst_nd_stride = dst_nd_stride;
            break;
        case 2:
            if (scales.space != ASC_FB)
                diagnostics_.fail(Rule::Space, text("SetFixPipeConfig of a tensor in %s", name_of_space(scales.space)),
                                  "the scales are in C2PIPE2GM");
            core.fix.scales = scales;
            break;
        default: diagnostics_.fail(Rule::Protocol, "an unknown register");
    }
    overhead(Call::MaskSet);
}

// Checks everything about a Fixpipe except its destination.
Executor::Fix Executor::take_results(Core &core, const asc_local &src, asc_local scales, uint32_t dst_dtype,
                                     uint32_t src_dtype, asc_fix_shape shape, uint64_t scale) {
    const uint32_t bytes8 = bit_of(ASC_I8) | bit_of(ASC_U8), scaled = bytes8 | bit_of(ASC_F16);
    const bool whole = src_dtype == ASC_I32;
    if (src_dtype != ASC_F32 && src_dtype != ASC_I32)
        diagnostics_.fail(Rule::Cube, text("Fixpipe of %s", name_of_dtype(src_dtype)), "L0C holds float or int32_t");
    const uint32_t plain = whole ? bit_of(ASC_I32) : floats | bit_of(ASC_BF16);
    const uint32_t element = element_of(dst_dtype, shape.quant ? (whole ? scaled : bytes8) : plain, "Fixpipe");
    if (src.space != ASC_L0C)
        diagnostics_.fail(Rule::Space, text("Fixpipe from %s", name_of_space(src.space)), "it takes from CO1");
    if (shape.registers) {
        scale = core.fix.scale;
        scales = core.fix.scales;
        if (!shape.nz) {
            shape.nd_num = core.fix.nd_num;
            shape.src_nd_stride = core.fix.src_nd_stride;
            shape.dst_nd_stride = core.fix.dst_nd_stride;
        }
    }
    if (shape.nz) shape.nd_num = 1;
    if (shape.m > max_rows || shape.n > max_columns || shape.src_stride > 65535 || shape.dst_stride > (1u << 24) ||
        shape.relu > 1 || shape.nz > 1 || shape.split > 1 || shape.quant > 2 || shape.registers > 1 ||
        shape.nd_num > 65535 || shape.src_nd_stride > 65535 || shape.dst_nd_stride > 65535 ||
        shape.src_stride < shape.m || (!shape.nz && shape.dst_stride < shape.n) ||
        (shape.split && dst_dtype != ASC_F32)) {
        diagnostics_.fail(Rule::Cube, text("Fixpipe of %u x %u with strides %u and %u", shape.m, shape.n,
                                           shape.src_stride, shape.dst_stride));
    }
    const uint32_t width = element == 1 ? 32 : shape.split ? 8 : 16;
    Fix fix{shape, dst_dtype, src_dtype, element, width, {ASC_L0C, 0, 0}, {ASC_FB, 0, 0}, scale};
    if (shape.m == 0 || shape.n == 0 || shape.nd_num == 0) return fix;
    if (shape.nz && (shape.n % std::min(width, 16u) ||
                     static_cast<uint64_t>(shape.dst_stride) * 32 < static_cast<uint64_t>(shape.m) * width * element))
        diagnostics_.fail(Rule::Cube,
                          text("Fixpipe in fractals of %u x %u with %u blocks from column to column", shape.m, shape.n,
                               shape.dst_stride),
                          "n is a multiple of 16 and a column of fractals fits before the next");
    if (src.addr % 64)
        diagnostics_.fail(Rule::Alignment, text("Fixpipe from L0C[0x%x]", src.addr), "L0C starts on 64 bytes");
    const uint64_t extent = (shape.nd_num - 1ull) * shape.src_nd_stride * matrix_bytes +
                            result_place(shape.m - 1, shape.n - 1, shape.src_stride) + 4;
    fix.from = bytes_of(src, extent, "Fixpipe", "source");
    if (shape.quant == 2) {
        if (scales.space != ASC_L1 && scales.space != ASC_FB)
            diagnostics_.fail(Rule::Space, text("Fixpipe with scales in %s", name_of_space(scales.space)),
                              "they are in A1 or C2PIPE2GM");
        fix.numbers = bytes_of(scales, shape.n * 8ull, "Fixpipe", "scales");
    }
    if (core.atomic && core.atomic_dtype != dst_dtype)
        diagnostics_.fail(Rule::Atomic, text("Fixpipe of %s while SetAtomic named %s", name_of_dtype(dst_dtype),
                                             name_of_dtype(core.atomic_dtype)));
    core.clocks.issue(ASC_FIX);
    touch(core, ASC_FIX, fix.from, false, "Fixpipe");
    touch(core, ASC_FIX, fix.numbers, false, "Fixpipe");
    count("Fixpipe");
    if (!options_.compute) return fix;
    work(static_cast<uint64_t>(shape.nd_num) * shape.m * shape.n);
    fix.data = core.memory(ASC_L0C).data(fix.from.begin, fix.from.end);
    fix.valid = core.memory(ASC_L0C).valid(fix.from.begin, fix.from.end);
    if (shape.quant == 2) {
        LocalMemory &memory = core.memory(fix.numbers.space);
        fix.scales = memory.data(fix.numbers.begin, fix.numbers.end);
        fix.scales_valid = memory.valid(fix.numbers.begin, fix.numbers.end);
    }
    return fix;
}

void Executor::fixpipe(asc_global dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                       asc_fix_shape shape, uint64_t scale, int32_t line) {
    Core &core = running(line);
    const Fix fix = take_results(core, src, scales, dst_dtype, src_dtype, shape, scale);
    if (fix.from.size() == 0) return;
    const asc_fix_shape &s = fix.shape;
    const uint64_t element = fix.element, width = s.nz ? fix.width : s.n;
    // Rows of each matrix; with fractals: columns of fractals, each m rows of `width`.
    const uint64_t pieces = s.nz ? fix.columns_of_fractals() : s.m,
                   pitch = s.nz ? s.dst_stride * 32ull : s.dst_stride * element;
    const uint64_t bytes = width * element * (s.nz ? s.m : 1);
    std::vector<uint8_t> row(bytes), row_valid(bytes);
    for (uint64_t matrix = 0; matrix < s.nd_num; ++matrix) {
        const asc_global to = dst + matrix * s.dst_nd_stride * element;
        Rows rows = {0, bytes, static_cast<uint32_t>(pieces), pitch};
        const Rows emitted = rows;
        const uint32_t tensor = touch_global(core, ASC_FIX, to, rows, fix.element, true, core.atomic_kind(), "Fixpipe");
        emit_copy(core, Kind::CopyOut, ASC_FIX, src, to, emitted, dst_dtype, core.atomic);
        if (!options_.compute) continue;
        const uint64_t first = to - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
        for (uint64_t piece = 0; piece < pieces; ++piece) {
            // Columns past n exist only where n is half of a fractal of bytes; they become 0.
            std::fill(row.begin(), row.end(), uint8_t{0});
            std::fill(row_valid.begin(), row_valid.end(), uint8_t{1});
            for (uint64_t k = 0; k < bytes / element; ++k) {
                const uint64_t i = s.nz ? k / width : piece, j = s.nz ? piece * width + k % width : k;
                if (j < s.n) fix.put(matrix, i, j, &row[k * element], &row_valid[k * element]);
            }
            const uint64_t begin = first + piece * pitch;
            const GlobalBytes range = {tensor, begin, begin + bytes};
            if (core.atomic) combine_atomically(range, row.data(), row_valid.data(), core.atomic, dst_dtype);
            global_.store(range, row.data(), row_valid.data());
        }
    }
}

void Executor::fixpipe_local(asc_local dst, asc_local src, asc_local scales, uint32_t dst_dtype, uint32_t src_dtype,
                             asc_fix_shape shape, uint64_t scale, int32_t line) {
    Core &core = running(line);
    if (dst.space != ASC_L1 || shape.nz != 1)
        diagnostics_.fail(Rule::Space, text("Fixpipe to %s", name_of_space(dst.space)),
                          "it goes to global memory, or in fractals to A1");
    const Fix fix = take_results(core, src, scales, dst_dtype, src_dtype, shape, scale);
    if (fix.from.size() == 0) return;
    const asc_fix_shape &s = fix.shape;
    const uint64_t pieces = fix.columns_of_fractals(), pitch = s.dst_stride * 32ull,
                   bytes = static_cast<uint64_t>(s.m) * fix.width * fix.element;
    const Bytes to = bytes_of(dst, (pieces - 1) * pitch + bytes, "Fixpipe", "destination");
    if (dst.addr % 32)
        diagnostics_.fail(Rule::Alignment, text("Fixpipe to L1[0x%x]", dst.addr), "L1 starts on 32 bytes");
    touch(core, ASC_FIX, to, true, "Fixpipe");
    Instr record = instr(Kind::Load, ASC_FIX);
    record.dtype = static_cast<uint8_t>(dst_dtype);
    record.space = ASC_L1;
    record.bursts = static_cast<uint32_t>(pieces);
    record.burst_bytes = static_cast<uint32_t>(bytes);
    record.operands = 2;
    record.operand[0].addr = dst.addr;
    record.operand[1].addr = src.addr;
    emit(record);
    if (!options_.compute) return;
    uint8_t *data = core.memory(ASC_L1).data(to.begin, to.end), *valid = core.memory(ASC_L1).valid(to.begin, to.end);
    for (uint64_t i = 0; i < s.m; ++i) {
        for (uint64_t j = 0; j < pieces * fix.width; ++j) {
            const uint64_t at = j / fix.width * pitch + (i * fix.width + j % fix.width) * fix.element;
            std::memset(data + at, 0, fix.element);
            std::memset(valid + at, 1, fix.element);
            if (j < s.n) fix.put(0, i, j, data + at, valid + at);
        }
    }
}

}  // namespace sim

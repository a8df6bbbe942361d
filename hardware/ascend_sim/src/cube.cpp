// The cube at its basic level: LoadData (MTE1), Mmad (M) and Fixpipe (FIX).
#include "dtype.h"
#include "executor.h"
#include "numerics.h"

namespace sim {

namespace {
constexpr uint32_t fractal_bytes = 512, fractal_rows = 16, max_extent = 4095, max_repeat = 255;
constexpr uint32_t products = floats | bit_of(ASC_BF16) | bit_of(ASC_I8);

float value_at(const uint8_t *data, uint32_t dtype) {
    switch (dtype) {
        case ASC_F32: return *reinterpret_cast<const Row<float> *>(data);
        case ASC_F16: return float_from_half(*reinterpret_cast<const Row<uint16_t> *>(data));
        default: return float_from_bfloat(*reinterpret_cast<const Row<uint16_t> *>(data));
    }
}

// Where element (row, column) of an operand lies whose fractals hold `per_row` columns and are `pitch` apart by row.
uint64_t operand_place(uint64_t row, uint64_t column, uint64_t per_row, uint64_t pitch, uint64_t element) {
    return (row / fractal_rows * pitch + column / per_row) * fractal_bytes + row % fractal_rows * 32 +
           column % per_row * element;
}

// L0A is (m, k) row by row; L0B is (k, n) with n as the rows of a fractal, k by k.
uint64_t left_place(uint64_t i, uint64_t p, uint64_t k, uint64_t per_row, uint64_t element) {
    return operand_place(i, p, per_row, divide_up(k, per_row), element);
}
uint64_t right_place(uint64_t p, uint64_t j, uint64_t n, uint64_t per_row, uint64_t element) {
    return (p / per_row * divide_up(n, fractal_rows) + j / fractal_rows) * fractal_bytes + j % fractal_rows * 32 +
           p % per_row * element;
}
// L0C is (m, n) in columns of 16, each `rows` long.
uint64_t result_place(uint64_t i, uint64_t j, uint64_t rows) { return (j / 16 * rows * 16 + i * 16 + j % 16) * 4; }

// Takes a matrix out of its fractals; place(row, column) says where each element lies.
template <class Place>
Matrix from_fractals(LocalMemory &memory, const Bytes &range, uint64_t rows, uint64_t columns, uint32_t element,
                     Place place) {
    const uint8_t *data = memory.data(range.begin, range.end), *valid = memory.valid(range.begin, range.end);
    Matrix matrix;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.data.resize(rows * columns * element);
    matrix.valid.resize(matrix.data.size());
    for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t column = 0; column < columns; ++column) {
            const uint64_t to = (row * columns + column) * element, from = place(row, column);
            std::memcpy(&matrix.data[to], data + from, element);
            std::memcpy(&matrix.valid[to], valid + from, element);
        }
    }
    return matrix;
}
}  // namespace

void Executor::load_fractals(asc_local dst, asc_local src, asc_fractals shape, uint32_t dtype, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, products | bit_of(ASC_U8), "LoadData");
    if (src.space != ASC_L1 || (dst.space != ASC_L0A && dst.space != ASC_L0B)) {
        diagnostics_.fail(Rule::Space,
                          text("LoadData from %s to %s", name_of_space(src.space), name_of_space(dst.space)),
                          "it goes from A1 or B1 to A2 or B2");
    }
    if (shape.repeat > max_repeat || shape.start > 65535 || shape.src_stride > 65535 || shape.dst_gap > 65535 ||
        shape.transposed > 1) {
        diagnostics_.fail(Rule::Cube, text("LoadData with %u repeats from fractal %u, strides %u and %u", shape.repeat,
                                           shape.start, shape.src_stride, shape.dst_gap));
    }
    if (shape.transposed && element != 2)
        diagnostics_.fail(Rule::Cube, text("LoadData transposes %s", name_of_dtype(dtype)),
                          "it transposes 16-bit types only");
    if (shape.repeat == 0) return;
    if (dst.addr % fractal_bytes || src.addr % 32)
        diagnostics_.fail(Rule::Alignment, text("LoadData from 0x%x to 0x%x", src.addr, dst.addr),
                          "L0A and L0B start on 512 bytes");
    const uint64_t last = shape.repeat - 1, to_step = (1ull + shape.dst_gap) * fractal_bytes,
                   from_step = static_cast<uint64_t>(shape.src_stride) * fractal_bytes;
    const uint64_t first = static_cast<uint64_t>(shape.start) * fractal_bytes;
    const Bytes from = bytes_of(src, first + last * from_step + fractal_bytes, "LoadData", "source");
    const Bytes to = bytes_of(dst, last * to_step + fractal_bytes, "LoadData", "destination");
    core.clocks.issue(ASC_MTE1);
    touch(core, ASC_MTE1, {from.space, static_cast<uint32_t>(from.begin + first), from.end}, false, "LoadData");
    touch(core, ASC_MTE1, to, true, "LoadData");
    count("LoadData");
    Instr record = instr(Kind::Load, ASC_MTE1);
    record.dtype = static_cast<uint8_t>(dtype);
    record.space = static_cast<uint8_t>(dst.space);
    record.bursts = shape.repeat;
    record.burst_bytes = fractal_bytes;
    record.operands = 2;
    record.operand[0].addr = dst.addr;
    record.operand[1].addr = src.addr;
    emit(record);
    if (!options_.compute) return;
    work(shape.repeat * fractal_bytes / element);
    LocalMemory &source = core.memory(src.space), &target = core.memory(dst.space);
    const uint8_t *in[] = {source.data(from.begin, from.end), source.valid(from.begin, from.end)};
    uint8_t *out[] = {target.data(to.begin, to.end), target.valid(to.begin, to.end)};
    for (int plane = 0; plane < 2; ++plane) {   // the data, then their validity
        for (uint64_t i = 0; i < shape.repeat; ++i) {
            const uint8_t *fractal = in[plane] + first + i * from_step;
            uint8_t *place = out[plane] + i * to_step;
            if (!shape.transposed) {
                std::memcpy(place, fractal, fractal_bytes);
                continue;
            }
            for (uint32_t at = 0; at < 256; ++at)
                std::memcpy(place + (at % 16 * 16 + at / 16) * 2, fractal + at * 2, 2);
        }
    }
}

void Executor::mmad(asc_local c, asc_local a, asc_local b, asc_local bias, uint32_t c_dtype, uint32_t dtype,
                    asc_mmad_shape shape, int32_t line) {
    Core &core = running(line);
    const uint32_t element = element_of(dtype, products, "Mmad");
    if (c_dtype != (dtype == ASC_I8 ? ASC_I32 : ASC_F32)) {
        diagnostics_.fail(Rule::Cube, text("Mmad of %s into %s", name_of_dtype(dtype), name_of_dtype(c_dtype)));
    }
    if (a.space != ASC_L0A || b.space != ASC_L0B || c.space != ASC_L0C || (shape.with_bias && bias.space != ASC_BT)) {
        diagnostics_.fail(
            Rule::Space,
            text("Mmad of %s and %s into %s", name_of_space(a.space), name_of_space(b.space), name_of_space(c.space)),
            "it multiplies A2 by B2 into CO1, with a bias in C2");
    }
    if (shape.m > max_extent || shape.n > max_extent || shape.k > max_extent || shape.from_zero > 1 ||
        shape.with_bias > 1) {
        diagnostics_.fail(Rule::Cube, text("Mmad with m %u, n %u, k %u", shape.m, shape.n, shape.k));
    }
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) return;
    if (a.addr % fractal_bytes || b.addr % fractal_bytes || c.addr % 64)
        diagnostics_.fail(Rule::Alignment, "Mmad off its fractals", "L0A and L0B start on 512 bytes, L0C on 64");
    const uint64_t per_row = 32 / element, rows = round_up(shape.m, 16);
    const uint64_t steps = divide_up(shape.k, per_row);
    const Bytes left = bytes_of(a, divide_up(shape.m, 16) * steps * fractal_bytes, "Mmad", "A");
    const Bytes right = bytes_of(b, divide_up(shape.n, 16) * steps * fractal_bytes, "Mmad", "B");
    const Bytes to = bytes_of(c, divide_up(shape.n, 16) * rows * 64, "Mmad", "C");
    const Bytes added = shape.with_bias ? bytes_of(bias, shape.n * 4ull, "Mmad", "bias") : Bytes{ASC_BT, 0, 0};
    core.clocks.issue(ASC_M);
    touch(core, ASC_M, left, false, "Mmad");
    touch(core, ASC_M, right, false, "Mmad");
    if (shape.with_bias) touch(core, ASC_M, added, false, "Mmad");
    touch(core, ASC_M, to, true, "Mmad");
    count("Mmad");
    Instr record = instr(Kind::Cube, ASC_M);
    record.dtype = static_cast<uint8_t>(dtype);
    record.a = shape.m;
    record.b = shape.n;
    record.c = shape.k;
    emit(record);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(shape.m) * shape.n * shape.k / 4);
    Product product(shape.m, shape.n, shape.k, dtype);
    product.load_a(from_fractals(core.memory(ASC_L0A), left, shape.m, shape.k, element,
                                 [&](uint64_t i, uint64_t p) { return left_place(i, p, shape.k, per_row, element); }),
                   false);
    product.load_b(from_fractals(core.memory(ASC_L0B), right, shape.n, shape.k, element,
                                 [&](uint64_t j, uint64_t p) { return right_place(p, j, shape.n, per_row, element); }),
                   true);
    const auto place = [&](uint64_t i, uint64_t j) { return result_place(i, j, rows); };
    if (shape.with_bias)
        product.start_from(
            from_fractals(core.memory(ASC_BT), added, shape.m, shape.n, 4, [](uint64_t, uint64_t j) { return j * 4; }));
    else if (!shape.from_zero) product.start_from(from_fractals(core.memory(ASC_L0C), to, shape.m, shape.n, 4, place));
    product.multiply();
    uint8_t *data = core.memory(ASC_L0C).data(to.begin, to.end), *valid = core.memory(ASC_L0C).valid(to.begin, to.end);
    std::vector<uint8_t> row(shape.n * 4), row_valid(shape.n * 4);
    for (uint64_t i = 0; i < shape.m; ++i) {
        product.store_row(i, c_dtype, row.data(), row_valid.data());
        for (uint64_t j = 0; j < shape.n; ++j) {
            std::memcpy(data + place(i, j), &row[j * 4], 4);
            std::memcpy(valid + place(i, j), &row_valid[j * 4], 4);
        }
    }
}

void Executor::fixpipe(asc_global dst, asc_local src, uint32_t dst_dtype, uint32_t src_dtype, asc_fix_shape shape,
                       int32_t line) {
    Core &core = running(line);
    const bool whole = src_dtype == ASC_I32;
    const uint32_t element = element_of(dst_dtype, whole ? bit_of(ASC_I32) : floats | bit_of(ASC_BF16), "Fixpipe");
    if (src_dtype != ASC_F32 && src_dtype != ASC_I32)
        diagnostics_.fail(Rule::Cube, text("Fixpipe of %s", name_of_dtype(src_dtype)), "L0C holds float or int32_t");
    if (src.space != ASC_L0C)
        diagnostics_.fail(Rule::Space, text("Fixpipe from %s", name_of_space(src.space)), "it takes from CO1");
    if (shape.m > 8192 || shape.n > max_extent || shape.src_stride > 65535 || shape.dst_stride > (1u << 24) ||
        shape.relu > 1 || shape.src_stride < shape.m || shape.dst_stride < shape.n) {
        diagnostics_.fail(Rule::Cube, text("Fixpipe of %u x %u with strides %u and %u", shape.m, shape.n,
                                           shape.src_stride, shape.dst_stride));
    }
    if (shape.m == 0 || shape.n == 0) return;
    if (src.addr % 64)
        diagnostics_.fail(Rule::Alignment, text("Fixpipe from L0C[0x%x]", src.addr), "L0C starts on 64 bytes");
    const uint64_t extent = result_place(shape.m - 1, shape.n - 1, shape.src_stride) + 4;
    const Bytes from = bytes_of(src, extent, "Fixpipe", "source");
    core.clocks.issue(ASC_FIX);
    touch(core, ASC_FIX, from, false, "Fixpipe");
    Rows rows = {0, static_cast<uint64_t>(shape.n) * element, shape.m,
                 static_cast<uint64_t>(shape.dst_stride) * element};
    const Rows emitted = rows;
    const uint32_t tensor = touch_global(core, ASC_FIX, dst, rows, element, true, core.atomic != 0, "Fixpipe");
    count("Fixpipe");
    emit_copy(core, Kind::CopyOut, ASC_FIX, src, dst, emitted, dst_dtype, core.atomic);
    if (!options_.compute) return;
    work(static_cast<uint64_t>(shape.m) * shape.n);
    if (core.atomic && core.atomic_dtype != dst_dtype)
        diagnostics_.fail(Rule::Atomic, text("Fixpipe of %s while SetAtomic named %s", name_of_dtype(dst_dtype),
                                             name_of_dtype(core.atomic_dtype)));
    const uint8_t *data = core.memory(ASC_L0C).data(from.begin, from.end),
                  *valid = core.memory(ASC_L0C).valid(from.begin, from.end);
    std::vector<uint8_t> row(emitted.bytes), row_valid(emitted.bytes);
    const uint64_t first = dst - ASC_GM_BASE - tensor * ASC_GM_STRIDE;
    for (uint64_t i = 0; i < shape.m; ++i) {
        for (uint64_t j = 0; j < shape.n; ++j) {
            const uint64_t at = result_place(i, j, shape.src_stride);
            uint8_t *place = &row[j * element];
            if (whole) {
                int32_t value;
                std::memcpy(&value, data + at, 4);
                value = shape.relu && value < 0 ? 0 : value;
                std::memcpy(place, &value, 4);
            } else {
                float value = value_at(data + at, ASC_F32);
                value = shape.relu && value < 0 ? 0 : value;
                const uint16_t narrow = dst_dtype == ASC_F16 ? half_from_float(value) : bfloat_from_float(value);
                std::memcpy(place, dst_dtype == ASC_F32 ? static_cast<const void *>(&value) : &narrow, element);
            }
            std::memset(&row_valid[j * element], !std::memchr(valid + at, 0, 4), element);
        }
        const uint64_t begin = first + i * emitted.pitch;
        const GlobalBytes range = {tensor, begin, begin + row.size()};
        if (core.atomic) combine_atomically(range, row.data(), row_valid.data(), core.atomic, dst_dtype);
        global_.store(range, row.data(), row_valid.data());
    }
}

}  // namespace sim

// The cube's basic API: LoadData (MTE1) and Mmad (M).
#include "numerics/dtype.h"
#include "executor.h"
#include "fractals.h"
#include "numerics/numerics.h"

namespace sim {

namespace {
constexpr uint32_t fractal_rows = 16, max_extent = 4095;
constexpr uint32_t products = floats | bit_of(ASC_BF16) | bit_of(ASC_I8);

// Offset of element (row, column). Fractals hold `per_row` columns and rows of fractals are `pitch` apart.
uint64_t operand_place(uint64_t row, uint64_t column, uint64_t per_row, uint64_t pitch, uint64_t element) {
    return (row / fractal_rows * pitch + column / per_row) * fractal_bytes + row % fractal_rows * 32 +
           column % per_row * element;
}

// L0A stores an (m, k) matrix row by row. L0B stores a (k, n) matrix step by step of k, with n as the rows of a
// fractal.
uint64_t left_place(uint64_t i, uint64_t p, uint64_t k, uint64_t per_row, uint64_t element) {
    return operand_place(i, p, per_row, divide_up(k, per_row), element);
}
uint64_t right_place(uint64_t p, uint64_t j, uint64_t n, uint64_t per_row, uint64_t element) {
    return (p / per_row * divide_up(n, fractal_rows) + j / fractal_rows) * fractal_bytes + j % fractal_rows * 32 +
           p % per_row * element;
}
// Reads a matrix out of its fractals; place(row, column) is the offset of an element, and `run` columns from a multiple
// of it on lie side by side. An element size of 0 means packed elements: two in a byte, 64 columns in a row of 32 bytes.
// They are unpacked to one byte each.
template <class Place>
Matrix from_fractals(LocalMemory &memory, const Bytes &range, uint64_t rows, uint64_t columns, uint32_t element,
                     uint64_t run, Place place) {
    const uint8_t *data = memory.data(range.begin, range.end), *valid = memory.valid(range.begin, range.end);
    Matrix matrix;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.data.resize(rows * columns * std::max(1u, element));
    matrix.valid.resize(matrix.data.size());
    for (uint64_t row = 0; row < rows && element == 0; ++row) {
        for (uint64_t column = 0; column < columns; ++column) {
            const uint64_t pair = place(row, column / 64 * 64) + column % 64 / 2, to = row * columns + column;
            matrix.data[to] = static_cast<uint8_t>(((data[pair] >> column % 2 * 4 & 15) ^ 8) - 8);
            matrix.valid[to] = valid[pair];
        }
    }
    for (uint64_t row = 0; row < rows && element; ++row) {
        for (uint64_t column = 0; column < columns; column += run) {
            const uint64_t to = (row * columns + column) * element, from = place(row, column);
            const uint64_t bytes = std::min(run, columns - column) * element;
            std::memcpy(&matrix.data[to], data + from, bytes);
            std::memcpy(&matrix.valid[to], valid + from, bytes);
        }
    }
    return matrix;
}
}  // namespace

void Executor::emit_load(const asc_local &dst, const asc_local &src, uint32_t dtype, uint64_t fractals) {
    Instr record = instr(Kind::Load, ASC_MTE1);
    record.dtype = static_cast<uint8_t>(dtype);
    record.space = static_cast<uint8_t>(dst.space);
    record.bursts = static_cast<uint32_t>(fractals);
    record.burst_bytes = fractal_bytes;
    record.operands = 2;
    record.operand[0].addr = dst.addr;
    record.operand[1].addr = src.addr;
    emit(record);
}

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
    emit_load(dst, src, dtype, shape.repeat);
    if (!options_.compute) return;
    work(shape.repeat * fractal_bytes / element);
    LocalMemory &source = core.memory(src.space), &target = core.memory(dst.space);
    const uint8_t *in[] = {source.data(from.begin, from.end), source.valid(from.begin, from.end)};
    uint8_t *out[] = {target.data(to.begin, to.end), target.valid(to.begin, to.end)};
    for (int plane = 0; plane < 2; ++plane) {  // first the data, then their validity
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
    const bool packed = dtype == ASC_I4;  // two elements a byte, 64 in a row of a fractal
    const uint32_t element = packed ? 1 : element_of(dtype, products, "Mmad");
    if (c_dtype != (dtype == ASC_I8 || packed ? ASC_I32 : ASC_F32)) {
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
    const uint64_t per_row = packed ? 64 : 32 / element, rows = round_up(shape.m, 16);
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
    record.dtype = static_cast<uint8_t>(packed ? uint32_t{ASC_I8} : dtype);
    record.a = shape.m;
    record.b = shape.n;
    record.c = packed ? (shape.k + 1) / 2 : shape.k;
    emit(record);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(shape.m) * shape.n * shape.k / 4);
    Product product(shape.m, shape.n, shape.k, packed ? uint32_t{ASC_I8} : dtype);
    product.load_a(from_fractals(core.memory(ASC_L0A), left, shape.m, shape.k, packed ? 0 : element, per_row,
                                 [&](uint64_t i, uint64_t p) { return left_place(i, p, shape.k, per_row, element); }),
                   false);
    product.load_b(from_fractals(core.memory(ASC_L0B), right, shape.n, shape.k, packed ? 0 : element, per_row,
                                 [&](uint64_t j, uint64_t p) { return right_place(p, j, shape.n, per_row, element); }),
                   true);
    const auto place = [&](uint64_t i, uint64_t j) { return result_place(i, j, rows); };
    if (shape.with_bias)
        product.start_from(from_fractals(core.memory(ASC_BT), added, shape.m, shape.n, 4, shape.n,
                                         [](uint64_t, uint64_t j) { return j * 4; }));
    else if (!shape.from_zero)
        product.start_from(from_fractals(core.memory(ASC_L0C), to, shape.m, shape.n, 4, 16, place));
    product.multiply();
    uint8_t *data = core.memory(ASC_L0C).data(to.begin, to.end), *valid = core.memory(ASC_L0C).valid(to.begin, to.end);
    std::vector<uint8_t> row(shape.n * 4), row_valid(shape.n * 4);
    for (uint64_t i = 0; i < shape.m; ++i) {
        product.store_row(i, c_dtype, row.data(), row_valid.data());
        for (uint64_t j = 0; j < shape.n; j += 16) {  // columns that lie side by side
            const uint64_t bytes = std::min<uint64_t>(16, shape.n - j) * 4;
            std::memcpy(data + place(i, j), &row[j * 4], bytes);
            std::memcpy(valid + place(i, j), &row_valid[j * 4], bytes);
        }
    }
}

}  // namespace sim

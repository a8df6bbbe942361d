// The high-level Matmul: C = A B (+ bias), from global memory to global memory.
#include "dtype.h"
#include "executor.h"
#include "products.h"

namespace sim {

namespace {
enum { has_bias = 1, adds_atomically = 2, asynchronous = 4 };

struct Types {
    uint8_t a, b, c;
};
constexpr Types supported[] = {
    {ASC_F16, ASC_F16, ASC_F32},    {ASC_F16, ASC_F16, ASC_F16}, {ASC_BF16, ASC_BF16, ASC_F32},
    {ASC_BF16, ASC_BF16, ASC_BF16}, {ASC_F32, ASC_F32, ASC_F32}, {ASC_I8, ASC_I8, ASC_I32},
};

bool is_supported(uint32_t a, uint32_t b, uint32_t c) {
    for (const Types &types : supported) {
        if (types.a == a && types.b == b && types.c == c) return true;
    }
    return false;
}

bool is_bias(uint32_t dtype, uint32_t a) {
    if (a == ASC_I8) return dtype == ASC_I32;
    return dtype == ASC_F32 || (dtype == a && a != ASC_F32);
}
}  // namespace

// Checks one matrix and notes its bytes; returns its tensor and the offset of its first element.
GlobalBytes Executor::touch_matrix(Core &core, asc_global address, uint32_t dtype, uint64_t rows, uint64_t columns,
                                   uint64_t pitch, bool write, bool atomic, const char *what) {
    const uint64_t element = bytes_of_dtype(dtype);
    if (pitch < columns) {
        diagnostics_.fail(Rule::Matmul,
                          text("%s has rows of %llu elements, but they are %llu apart", what,
                               static_cast<unsigned long long>(columns), static_cast<unsigned long long>(pitch)));
    }
    Rows place = {0, columns * element, rows, pitch * element};
    touch_global(core, ASC_S, address, place, static_cast<uint32_t>(element), write, atomic, what);
    return global_.locate(address, ((rows - 1) * pitch + columns) * element, write, what);
}

void Executor::matmul(asc_matrix a, asc_matrix b, asc_matrix c, asc_matrix bias, asc_matmul_shape shape, uint32_t flags,
                      int32_t line) {
    Core &core = running(line);
    if (flags > 7 || a.transposed > 1 || b.transposed > 1)
        diagnostics_.fail(Rule::Protocol, "Matmul with unknown flags");
    if (!is_supported(a.dtype, b.dtype, c.dtype)) {
        diagnostics_.fail(
            Rule::Dtype,
            text("Matmul of %s and %s into %s", name_of_dtype(a.dtype), name_of_dtype(b.dtype), name_of_dtype(c.dtype)),
            "half and bfloat16 give float or themselves, float gives float, int8 gives int32");
    }
    if ((flags & has_bias) && !is_bias(bias.dtype, a.dtype))
        diagnostics_.fail(Rule::Dtype, text("Matmul with a bias of %s", name_of_dtype(bias.dtype)),
                          "use a bias of float (int32 for int8)");
    const uint32_t most = 1u << 24;
    if (!shape.m || !shape.n || !shape.k || shape.m > most || shape.n > most || shape.k > most || shape.batch > 65535 ||
        shape.lda > most || shape.ldb > most || shape.ldc > most) {
        diagnostics_.fail(Rule::Matmul,
                          text("Matmul with m %u, n %u, k %u, batch %u", shape.m, shape.n, shape.k, shape.batch));
    }
    const uint32_t batch = std::max(shape.batch, 1u);
    const uint64_t a_rows = a.transposed ? shape.k : shape.m, a_columns = a.transposed ? shape.m : shape.k;
    const uint64_t b_rows = b.transposed ? shape.n : shape.k, b_columns = b.transposed ? shape.k : shape.n;
    for (uint32_t pipe = ASC_V; pipe < ASC_PIPES; ++pipe) {   // the message to the cube core waits for what was written
        if (core.clocks.issued(pipe) > core.clocks.known(ASC_S, pipe)) scalar_waits(core, pipe);
    }
    const GlobalBytes from_a = touch_matrix(core, a.address, a.dtype, a_rows * batch, a_columns, shape.lda, false,
                                            false, "Matmul's A");
    const GlobalBytes from_b = touch_matrix(core, b.address, b.dtype, b_rows * batch, b_columns, shape.ldb, false,
                                            false, "Matmul's B");
    GlobalBytes from_bias = {};
    if (flags & has_bias)
        from_bias = touch_matrix(core, bias.address, bias.dtype, 1, shape.n, shape.n, false, false, "Matmul's bias");
    const bool atomic = (flags & adds_atomically) != 0;
    const GlobalBytes to = touch_matrix(core, c.address, c.dtype, static_cast<uint64_t>(shape.m) * batch, shape.n,
                                        shape.ldc, true, atomic, "Matmul's C");
    count("Matmul");
    Instr record = instr(Kind::Matmul, ASC_M);
    record.dtype = static_cast<uint8_t>(a.dtype);
    record.op = static_cast<uint16_t>(c.dtype);
    record.gm = c.address;
    record.matmul = shape;
    record.matrix[0] = {a.address, static_cast<uint32_t>(a_columns * bytes_of_dtype(a.dtype)),
                        static_cast<uint32_t>(a_rows * batch), shape.lda * uint64_t{bytes_of_dtype(a.dtype)}};
    record.matrix[1] = {b.address, static_cast<uint32_t>(b_columns * bytes_of_dtype(b.dtype)),
                        static_cast<uint32_t>(b_rows * batch), shape.ldb * uint64_t{bytes_of_dtype(b.dtype)}};
    record.matrix[2] = {c.address, static_cast<uint32_t>(shape.n * bytes_of_dtype(c.dtype)), shape.m * batch,
                        shape.ldc * uint64_t{bytes_of_dtype(c.dtype)}};
    record.atomic = atomic;
    core.clocks.issue(ASC_M);
    emit(record);
    if (!(flags & asynchronous)) scalar_waits(core, ASC_M);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(shape.m) * shape.n * batch);   // in steps, so that the product cannot overflow
    for (uint32_t i = 0; i < batch; ++i) work(static_cast<uint64_t>(shape.m) * shape.n / 4 * shape.k);
    const uint64_t c_element = bytes_of_dtype(c.dtype), a_element = bytes_of_dtype(a.dtype);
    Product product(shape.m, shape.n, shape.k, a.dtype);
    for (uint64_t i = 0; i < batch; ++i) {
        product.load_a(matrix_at(from_a, i * a_rows * shape.lda * a_element, a_rows, a_columns, shape.lda, a.dtype),
                       a.transposed);
        product.load_b(matrix_at(from_b, i * b_rows * shape.ldb * a_element, b_rows, b_columns, shape.ldb, b.dtype),
                       b.transposed);
        if (flags & has_bias) product.load_bias(matrix_at(from_bias, 0, 1, shape.n, shape.n, bias.dtype), bias.dtype);
        product.multiply();
        std::vector<uint8_t> data(shape.n * c_element), valid(data.size());
        for (uint64_t row = 0; row < shape.m; ++row) {
            product.store_row(row, c.dtype, data.data(), valid.data());
            const uint64_t begin = to.begin + ((i * shape.m + row) * shape.ldc) * c_element;
            const GlobalBytes range = {to.tensor, begin, begin + data.size()};
            if (atomic) combine_atomically(range, data.data(), valid.data(), 1, c.dtype);
            global_.store(range, data.data(), valid.data());
        }
    }
}

// Copies a matrix out of global memory, row after row without gaps.
Matrix Executor::matrix_at(const GlobalBytes &place, uint64_t offset, uint64_t rows, uint64_t columns, uint64_t pitch,
                           uint32_t dtype) const {
    const uint64_t element = bytes_of_dtype(dtype);
    Matrix matrix;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.data.resize(rows * columns * element);
    matrix.valid.resize(matrix.data.size());
    for (uint64_t row = 0; row < rows; ++row) {
        const uint64_t begin = place.begin + offset + row * pitch * element;
        global_.load({place.tensor, begin, begin + columns * element}, &matrix.data[row * columns * element],
                     &matrix.valid[row * columns * element]);
    }
    return matrix;
}

}  // namespace sim

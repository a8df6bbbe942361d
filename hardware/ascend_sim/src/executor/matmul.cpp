// The high-level Matmul: C = A B (+ bias), from global memory to global memory.
#include "numerics/dtype.h"
#include "executor.h"
#include "numerics/products.h"

namespace sim {

namespace {
enum { has_bias = 1, adds_atomically = 2, asynchronous = 4 };

struct Types { uint8_t a, b, c; };
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

// Layout of a matrix: `count` pieces of `bytes`, `step` bytes apart. Pieces are rows; with fractals they are columns of
// fractals, each as long as the matrix has rows.
struct Executor::Laid {
    asc_global address;
    uint32_t dtype;
    uint64_t rows, columns, pitch, width;  // width: elements in a row of a fractal, 0 without fractals

    uint64_t element() const { return bytes_of_dtype(dtype); }
    uint64_t bytes() const { return (width ? rows * width : columns) * element(); }
    uint64_t count() const { return width ? divide_up(columns, width) : rows; }
    uint64_t step() const { return pitch * element() * (width ? width : 1); }
    bool fits() const { return pitch >= (width ? rows : columns); }
    // Offset of an element from the first one.
    uint64_t place(uint64_t row, uint64_t column) const {
        return (width ? (column / width * pitch + row) * width + column % width : row * pitch + column) * element();
    }
};

// Checks one matrix and records its bytes; returns its tensor and the offset of its first element.
GlobalBytes Executor::touch_matrix(Core &core, const Laid &matrix, bool write, uint32_t atomic, const char *what) {
    if (!matrix.fits()) {
        diagnostics_.fail(
            Rule::Matmul,
            text("%s has %s of %llu elements, but they are %llu apart", what, matrix.width ? "columns" : "rows",
                 static_cast<unsigned long long>(matrix.width ? matrix.rows : matrix.columns),
                 static_cast<unsigned long long>(matrix.pitch)));
    }
    Rows place = {0, matrix.bytes(), matrix.count(), matrix.step()};
    touch_global(core, ASC_M, matrix.address, place, static_cast<uint32_t>(matrix.element()), write, atomic, what);
    return global_.locate(matrix.address, (matrix.count() - 1) * matrix.step() + matrix.bytes(), write, what);
}

void Executor::matmul(asc_matrix a, asc_matrix b, asc_matrix c, asc_matrix bias, asc_matmul_shape shape, uint32_t flags,
                      int32_t line) {
    Core &core = running(line);
    if (launch_.kind == ASC_AIV)
        diagnostics_.fail(Rule::Unit, "Matmul runs on a cube core, and this launch has vector cores alone");
    if (!core.has_pipe) diagnostics_.fail(Rule::BufferInit, "Matmul before the core has constructed a TPipe");
    if (flags > 7 || a.transposed > 1 || b.transposed > 1 || a.fractals > 1 || b.fractals > 1 || c.fractals > 1)
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
    for (uint32_t pipe = ASC_V; pipe < ASC_PIPES;
         ++pipe) {  // the message to the cube core waits for the writes before it
        if (core.clocks.issued(pipe) > core.clocks.known(ASC_S, pipe)) wait_for(core, ASC_S, pipe);
    }
    if (batch > 1 && (a.fractals || b.fractals || c.fractals))
        diagnostics_.fail(Rule::Matmul, "Matmul of several matrices in fractals", "multiply them one by one");
    const auto laid = [](const asc_matrix &matrix, uint64_t rows, uint64_t columns, uint64_t pitch, uint64_t width) {
        return Laid{matrix.address, matrix.dtype, rows, columns, pitch, matrix.fractals ? width : 0};
    };
    const uint64_t c0 = 32 / bytes_of_dtype(a.dtype);
    const Laid all_a = laid(a, a_rows * batch, a_columns, shape.lda, c0),
               all_b = laid(b, b_rows * batch, b_columns, shape.ldb, c0);
    const Laid all_c = laid(c, static_cast<uint64_t>(shape.m) * batch, shape.n, shape.ldc, 16);
    const Laid biases = {bias.address, bias.dtype, 1, shape.n, shape.n, 0};
    core.clocks.issue(ASC_M);
    const GlobalBytes from_a = touch_matrix(core, all_a, false, 0, "Matmul's A");
    const GlobalBytes from_b = touch_matrix(core, all_b, false, 0, "Matmul's B");
    GlobalBytes from_bias = {};
    if (flags & has_bias) from_bias = touch_matrix(core, biases, false, 0, "Matmul's bias");
    const bool atomic = (flags & adds_atomically) != 0;
    const GlobalBytes to = touch_matrix(core, all_c, true, atomic ? kind_of_atomic(1, c.dtype) : 0, "Matmul's C");
    count("Matmul");
    Instr record = instr(Kind::Matmul, ASC_M);
    record.dtype = static_cast<uint8_t>(a.dtype);
    record.op = static_cast<uint16_t>(c.dtype);
    record.gm = c.address;
    record.matmul = shape;
    const Laid *matrices[] = {&all_a, &all_b, &all_c, &biases};
    for (int i = 0; i < (flags & has_bias ? 4 : 3); ++i)
        record.matrix[i] = {matrices[i]->address, static_cast<uint32_t>(matrices[i]->bytes()),
                            static_cast<uint32_t>(matrices[i]->count()), matrices[i]->step()};
    record.atomic = atomic;
    emit(record);
    if (!(flags & asynchronous)) wait_for(core, ASC_S, ASC_M);
    if (!options_.compute) return;

    work(static_cast<uint64_t>(shape.m) * shape.n * batch);  // in two steps, so that the product cannot overflow
    for (uint32_t i = 0; i < batch; ++i) work(static_cast<uint64_t>(shape.m) * shape.n / 4 * shape.k);
    const uint64_t c_element = all_c.element();
    const Laid one_a = laid(a, a_rows, a_columns, shape.lda, c0), one_b = laid(b, b_rows, b_columns, shape.ldb, c0);
    Product product(shape.m, shape.n, shape.k, a.dtype);
    for (uint64_t i = 0; i < batch; ++i) {
        product.load_a(matrix_at(from_a, i * a_rows * one_a.step(), one_a), a.transposed);
        product.load_b(matrix_at(from_b, i * b_rows * one_b.step(), one_b), b.transposed);
        if (flags & has_bias) product.load_bias(matrix_at(from_bias, 0, biases), bias.dtype);
        product.multiply();
        // With fractals a row is cut into pieces; surplus columns of the last piece are 0.
        const uint64_t piece = all_c.width ? all_c.width : shape.n;
        std::vector<uint8_t> data(divide_up(shape.n, piece) * piece * c_element, 0), valid(data.size(), 1);
        for (uint64_t row = 0; row < shape.m; ++row) {
            product.store_row(row, c.dtype, data.data(), valid.data());
            for (uint64_t column = 0; column < shape.n; column += piece) {
                const uint64_t begin = to.begin + all_c.place(i * shape.m + row, column);
                const GlobalBytes range = {to.tensor, begin, begin + piece * c_element};
                uint8_t *from = &data[column * c_element], *checks = &valid[column * c_element];
                if (atomic) combine_atomically(range, from, checks, 1, c.dtype);
                global_.store(range, from, checks);
            }
        }
    }
}

// Copies a matrix out of global memory, row after row without gaps.
Matrix Executor::matrix_at(const GlobalBytes &place, uint64_t offset, const Laid &matrix) const {
    Matrix made;
    made.rows = matrix.rows;
    made.columns = matrix.columns;
    made.data.resize(matrix.rows * matrix.columns * matrix.element());
    made.valid.resize(made.data.size());
    const uint64_t piece = matrix.width ? matrix.width : matrix.columns;
    for (uint64_t row = 0; row < matrix.rows; ++row) {
        for (uint64_t column = 0; column < matrix.columns; column += piece) {
            const uint64_t begin = place.begin + offset + matrix.place(row, column),
                           bytes = std::min(piece, matrix.columns - column) * matrix.element(),
                           to = (row * matrix.columns + column) * matrix.element();
            global_.load({place.tensor, begin, begin + bytes}, &made.data[to], &made.valid[to]);
        }
    }
    return made;
}

}  // namespace sim

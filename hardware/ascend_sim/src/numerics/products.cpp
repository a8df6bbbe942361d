#include "products.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "dtype.h"
#include "numerics.h"

namespace sim {

namespace {
constexpr uint64_t panel = 8, strip = 4;  // columns and rows computed together, in registers

template <class T>
T element_at(uint32_t dtype, const uint8_t *data, uint64_t i) {
    switch (dtype) {
        case ASC_F32: return static_cast<T>(reinterpret_cast<const Row<float> *>(data)[i]);
        case ASC_F16: return static_cast<T>(float_from_half(reinterpret_cast<const Row<uint16_t> *>(data)[i]));
        case ASC_BF16: return static_cast<T>(float_from_bfloat(reinterpret_cast<const Row<uint16_t> *>(data)[i]));
        case ASC_I32: return static_cast<T>(reinterpret_cast<const Row<int32_t> *>(data)[i]);
        default: return static_cast<T>(reinterpret_cast<const Row<int8_t> *>(data)[i]);
    }
}

template <class T>
std::vector<T> elements_of(uint32_t dtype, const uint8_t *data, uint64_t count) {
    std::vector<T> elements(count);
    if (std::is_same<T, float>::value && dtype == ASC_F32) std::memcpy(elements.data(), data, count * sizeof(T));
    else
        for (uint64_t i = 0; i < count; ++i) elements[i] = element_at<T>(dtype, data, i);
    return elements;
}

// The columns of a panel in one vector. The compiler splits it where registers are shorter.
template <class T>
struct Panel;
template <>
struct Panel<float> {
    typedef float type __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct Panel<int32_t> {
    typedef uint32_t type __attribute__((vector_size(32), aligned(4), may_alias));
};  // wraps around

// A machine with AVX2 takes code for its registers. The sums are the same bits: nothing is contracted or reordered.
#ifdef __x86_64__
#define FOR_WIDE_REGISTERS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_WIDE_REGISTERS
#endif

// Four rows of a times one panel of b, added to c.
template <class T>
FOR_WIDE_REGISTERS void multiply_strip(const T *const (&row)[strip], const T *b, T (&sum)[strip][panel], uint64_t k) {
    using Vector = typename Panel<T>::type;
    Vector total[strip];
    std::memcpy(total, sum, sizeof total);
    for (uint64_t p = 0; p < k; ++p) {
        const Vector columns = *reinterpret_cast<const Vector *>(b + p * panel);
        for (uint64_t r = 0; r < strip; ++r) total[r] += columns * row[r][p];
    }
    std::memcpy(sum, total, sizeof total);
}

template <class T>
void multiply_block(const T *a, const T *b, T *c, uint64_t k, uint64_t rows, uint64_t columns, uint64_t pitch) {
    T sum[strip][panel] = {};
    const T *row[strip];
    for (uint64_t r = 0; r < strip; ++r) row[r] = a + std::min(r, rows - 1) * k;
    for (uint64_t r = 0; r < rows; ++r) std::copy_n(c + r * pitch, columns, sum[r]);
    multiply_strip(row, b, sum, k);
    for (uint64_t r = 0; r < rows; ++r) std::copy_n(sum[r], columns, c + r * pitch);
}
}  // namespace

Product::Product(uint64_t m, uint64_t n, uint64_t k, uint32_t dtype)
    : m_(m), n_(n), k_(k), panels_((n + panel - 1) / panel), dtype_(dtype), row_valid_(m, 1), column_valid_(n, 1),
      bias_valid_(n, 1) {}

// Converts to (m, k) by rows, or (k, n) by panels.
template <class T>
void Product::load(std::vector<T> &to, const Matrix &matrix, bool transposed, bool panels) {
    const uint64_t element = bytes_of_dtype(dtype_), rows = matrix.rows, columns = matrix.columns;
    std::vector<uint8_t> &valid = panels ? column_valid_ : row_valid_;
    to.assign(panels ? panels_ * panel * k_ : m_ * k_, T(0));
    std::fill(valid.begin(), valid.end(), 1);
    const bool clean = matrix.valid.empty() || !std::memchr(matrix.valid.data(), 0, matrix.valid.size());
    const std::vector<T> elements = elements_of<T>(dtype_, matrix.data.data(), rows * columns);
    for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t column = 0; column < columns; ++column) {
            const uint64_t i = transposed ? column : row, j = transposed ? row : column, from = row * columns + column;
            const uint64_t at = panels ? (j / panel * k_ + i) * panel + j % panel : i * k_ + j;
            to[at] = elements[from];
            if (!clean && std::memchr(&matrix.valid[from * element], 0, element)) valid[panels ? j : i] = 0;
        }
    }
}

void Product::load_a(const Matrix &matrix, bool transposed) {
    if (dtype_ == ASC_I8) load(ints_.a, matrix, transposed, false);
    else load(floats_.a, matrix, transposed, false);
}

void Product::load_b(const Matrix &matrix, bool transposed) {
    if (dtype_ == ASC_I8) load(ints_.b, matrix, transposed, true);
    else load(floats_.b, matrix, transposed, true);
}

void Product::load_bias(const Matrix &matrix, uint32_t dtype) {
    const uint64_t element = bytes_of_dtype(dtype);
    ints_.bias.assign(n_, 0);
    floats_.bias.assign(n_, 0);
    for (uint64_t j = 0; j < n_; ++j) {
        if (dtype == ASC_I32) ints_.bias[j] = element_at<int32_t>(dtype, matrix.data.data(), j);
        else floats_.bias[j] = element_at<float>(dtype, matrix.data.data(), j);
        bias_valid_[j] = !std::memchr(&matrix.valid[j * element], 0, element);
    }
}

void Product::start_from(const Matrix &matrix) { start_ = matrix; }

template <class T>
void Product::multiply(Operands<T> &operands) {
    operands.c.resize(m_ * n_);
    if (!start_.data.empty()) std::memcpy(operands.c.data(), start_.data.data(), m_ * n_ * sizeof(T));
    for (uint64_t i = 0; i < m_ && start_.data.empty(); ++i) {
        if (operands.bias.empty()) std::fill_n(operands.c.begin() + static_cast<int64_t>(i * n_), n_, T(0));
        else std::copy(operands.bias.begin(), operands.bias.end(), operands.c.begin() + static_cast<int64_t>(i * n_));
    }
    for (uint64_t j = 0; j < panels_; ++j) {
        for (uint64_t i = 0; i < m_; i += strip) {
            multiply_block(&operands.a[i * k_], &operands.b[j * panel * k_], &operands.c[i * n_ + j * panel], k_,
                           std::min(strip, m_ - i), std::min(panel, n_ - j * panel), n_);
        }
    }
}

void Product::multiply() {
    if (dtype_ == ASC_I8) multiply(ints_);
    else multiply(floats_);
}

void Product::store_row(uint64_t row, uint32_t dtype, uint8_t *data, uint8_t *valid) const {
    const uint64_t element = bytes_of_dtype(dtype), first = row * n_ * 4;
    const bool started = start_.valid.empty() || !std::memchr(&start_.valid[first], 0, n_ * 4);
    const bool clean = started && !std::memchr(column_valid_.data(), 0, n_) && !std::memchr(bias_valid_.data(), 0, n_);
    std::memset(valid, clean && row_valid_[row], n_ * element);
    for (uint64_t j = 0; j < n_ && !clean && row_valid_[row]; ++j) {
        const bool from = started || !std::memchr(&start_.valid[first + j * 4], 0, 4);
        std::memset(valid + j * element, from && column_valid_[j] && bias_valid_[j], element);
    }
    for (uint64_t j = 0; j < n_; ++j) {
        if (dtype == ASC_I32) {
            reinterpret_cast<Row<int32_t> *>(data)[j] = ints_.c[row * n_ + j];
            continue;
        }
        const float value = canonical(floats_.c[row * n_ + j]);
        if (dtype == ASC_F32) reinterpret_cast<Row<float> *>(data)[j] = value;
        else
            reinterpret_cast<Row<uint16_t> *>(data)[j] =
                dtype == ASC_F16 ? half_from_float(value) : bfloat_from_float(value);
    }
}

}  // namespace sim

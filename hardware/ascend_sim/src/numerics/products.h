// Matrix products on the host: float accumulation for floating types, int32 for int8, always in the order of k.
#pragma once
#include <cstdint>
#include <vector>

namespace sim {

// Elements in the layout of global memory, without gaps.
struct Matrix {
    uint64_t rows = 0, columns = 0;
    std::vector<uint8_t> data, valid;
};

class Product {
public:
    Product(uint64_t m, uint64_t n, uint64_t k, uint32_t dtype);
    void load_a(const Matrix &matrix, bool transposed);
    void load_b(const Matrix &matrix, bool transposed);
    void load_bias(const Matrix &matrix, uint32_t dtype);
    // Initial values of the sums, row by row: float, or int32 for int8. If null, the sums start from the bias or 0.
    void start_from(const Matrix &matrix);
    void multiply();
    // Writes one row of the result as elements of `dtype`.
    void store_row(uint64_t row, uint32_t dtype, uint8_t *data, uint8_t *valid) const;

private:
    template <class T>
    struct Operands {
        std::vector<T> a, b, c, bias;  // b in panels of 8 columns, padded with 0
    };
    template <class T>
    void load(std::vector<T> &to, const Matrix &matrix, bool transposed, bool panels);
    template <class T>
    void multiply(Operands<T> &operands);

    uint64_t m_, n_, k_, panels_;
    uint32_t dtype_;
    Operands<float> floats_;
    Operands<int32_t> ints_;
    std::vector<uint8_t> row_valid_, column_valid_, bias_valid_;
    Matrix start_;
};

}  // namespace sim

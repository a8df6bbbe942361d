#include "quantisation.h"

#include <algorithm>
#include <cstring>

#include "conversions.h"
#include "dtype.h"
#include "numerics.h"
#include "executor/operands.h"

namespace sim {

namespace {

// A number for each column (or row): read from a tensor, or one number for all.
struct Numbers {
    const TileRun &run;
    const Bytes &bytes;
    uint32_t dtype;
    double one;

    bool given() const { return bytes.begin != bytes.end; }
    uint64_t place(uint64_t i) const { return bytes.begin + i * bytes_of_dtype(dtype); }
    double at(uint64_t i) const {
        if (!given()) return one;
        // 64 bits hold a float in their lower half.
        if (dtype == ASC_U64) return *reinterpret_cast<const Row<float> *>(run.data + place(i));
        return value_of(dtype, run.data + place(i));
    }
    bool good(uint64_t i) const { return !given() || !std::memchr(run.valid + place(i), 0, bytes_of_dtype(dtype)); }
};

double half_of_scalar(const TileRun &run, bool upper) {
    return float_of(static_cast<uint32_t>(upper ? run.scalar >> 32 : run.scalar));
}

float multiplied(float a, float b) { return a * b; }

}  // namespace

void quantise(TileRun &run) {
    const Numbers scale{run, run.bytes.src1, run.dtype, half_of_scalar(run, false)},
        offset{run, run.bytes.src2, run.dtype, half_of_scalar(run, true)};
    for (uint64_t i = 0, n = static_cast<uint64_t>(run.tile.rows) * run.tile.columns; i < n; ++i) {
        const uint64_t column = i % run.tile.columns, from = run.bytes.src0.begin + i * run.element;
        const float x = static_cast<float>(value_of(run.dtype, run.data + from));
        const float y = multiplied(x, static_cast<float>(scale.at(column))) + static_cast<float>(offset.at(column));
        put_value(ASC_I8, run.data + run.bytes.dst.begin + i, y, ASC_RINT);
        run.valid[run.bytes.dst.begin + i] =
            !std::memchr(run.valid + from, 0, run.element) && scale.good(column) && offset.good(column);
    }
}

void dequantise(TileRun &run) {
    const Numbers scale{run, run.bytes.src1, run.tile.axis, half_of_scalar(run, false)};
    const uint64_t per_block = 32 / run.element, pitch = round_up(run.tile.columns, per_block);
    for (uint64_t row = 0; row < run.tile.rows; ++row) {
        for (uint64_t column = 0; column < run.tile.valid_columns; ++column) {
            const uint64_t from = run.bytes.src0.begin + (row * run.tile.columns + column) * 4,
                           to = run.bytes.dst.begin + (row * pitch + column) * run.element;
            const float x = static_cast<float>(value_of(ASC_I32, run.data + from));
            const float y = multiplied(x, static_cast<float>(scale.at(column)));
            put_value(run.dtype, run.data + to, y, ASC_RINT);
            std::memset(run.valid + to, !std::memchr(run.valid + from, 0, 4) && scale.good(column), run.element);
        }
    }
}

void antiquantise(TileRun &run) {
    const bool by_row = run.tile.flags & 1, packed = run.tile.axis == ASC_I4;
    const Numbers offset{run, run.bytes.src1, run.dtype, half_of_scalar(run, false)},
        scale{run, run.bytes.src2, run.dtype, half_of_scalar(run, true)};
    for (uint64_t i = 0, n = static_cast<uint64_t>(run.tile.rows) * run.tile.columns; i < n; ++i) {
        const uint64_t from = run.bytes.src0.begin + (packed ? i / 2 : i), to = run.bytes.dst.begin + i * run.element;
        const uint64_t number = by_row ? i / run.tile.columns : i % run.tile.columns;
        const uint8_t byte = run.data[from];
        const int32_t x =
            packed ? static_cast<int32_t>((i % 2 ? byte >> 4 : byte & 15) ^ 8) - 8 : static_cast<int8_t>(byte);
        const float shifted = static_cast<float>(x) + static_cast<float>(offset.at(number));
        put_value(run.dtype, run.data + to, multiplied(shifted, static_cast<float>(scale.at(number))), ASC_RINT);
        std::memset(run.valid + to, run.valid[from] && offset.good(number) && scale.good(number), run.element);
    }
}

}  // namespace sim

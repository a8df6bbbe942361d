#include "tile_numerics.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "dtype.h"
#include "elementary.h"
#include "numerics.h"
#include "quantisation.h"
#include "executor/reduce.h"

namespace sim {

namespace {

float get(uint32_t dtype, const uint8_t *at) {
    return dtype == ASC_F32 ? *reinterpret_cast<const Row<float> *>(at)
                            : float_from_half(*reinterpret_cast<const Row<uint16_t> *>(at));
}

void put(uint32_t dtype, uint8_t *at, float value) {
    if (dtype == ASC_F32) *reinterpret_cast<Row<float> *>(at) = canonical(value);
    else *reinterpret_cast<Row<uint16_t> *>(at) = half_from_float(value);
}

float scalar_of(const TileRun &run) {
    return run.dtype == ASC_F32 ? float_of(static_cast<uint32_t>(run.scalar))
                                : float_from_half(static_cast<uint16_t>(run.scalar));
}

// One widened row; clears `good` if any used byte is invalid.
std::vector<float> row_of(const TileRun &run, const Bytes &bytes, uint64_t row, uint64_t pitch, uint64_t n,
                          bool &good) {
    const uint64_t begin = bytes.begin + row * pitch * run.element;
    std::vector<float> values(n);
    for (uint64_t i = 0; i < n; ++i) values[i] = get(run.dtype, run.data + begin + i * run.element);
    good = good && (n == 0 || !std::memchr(run.valid + begin, 0, n * run.element));
    return values;
}

void put_row(TileRun &run, uint64_t row, const std::vector<float> &values, bool good) {
    const uint64_t begin = run.bytes.dst.begin + row * run.tile.columns * run.element;
    for (uint64_t i = 0; i < values.size(); ++i) put(run.dtype, run.data + begin + i * run.element, values[i]);
    std::memset(run.valid + begin, good, values.size() * run.element);
    std::memset(run.valid + begin + values.size() * run.element, 0, (run.tile.columns - values.size()) * run.element);
}

// Writes one result of a row `copies` times.
void put_beside(TileRun &run, const Bytes &bytes, uint64_t row, uint64_t copies, uint32_t dtype, float value,
                bool good) {
    if (bytes.begin == bytes.end) return;
    const uint32_t element = bytes_of_dtype(dtype);
    for (uint64_t i = 0; i < copies; ++i) {
        const uint64_t at = bytes.begin + (row * copies + i) * element;
        put(dtype, run.data + at, value);
        std::memset(run.valid + at, good, element);
    }
}

// Adds repeat by repeat, as the vector unit does.
float sum_of(const std::vector<float> &values, uint32_t dtype) {
    const size_t lanes = dtype == ASC_F32 ? 64 : 128;
    float total = 0, part[128];
    for (size_t at = 0; at < values.size(); at += lanes) {
        const size_t n = std::min(lanes, values.size() - at);
        std::copy_n(values.begin() + static_cast<int64_t>(at), n, part);
        const float sum = tree_sum(part, static_cast<uint32_t>(n), dtype);
        total = at ? add_as(dtype, total, sum) : sum;
    }
    return total;
}

void softmax(TileRun &run) {
    const uint32_t beside = run.floats_beside ? uint32_t{ASC_F32} : run.dtype;
    const uint64_t copies = 32 / bytes_of_dtype(beside);
    for (uint64_t row = 0; row < run.tile.valid_rows; ++row) {
        bool good = true;
        std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, run.tile.valid_columns, good),
                           e(x.size());
        float most = x[0];
        for (float value : x) most = beats(ASC_REDUCE_MAX, value, most) ? value : most;
        for (size_t i = 0; i < x.size(); ++i) e[i] = static_cast<float>(elementary::exp(x[i] - most));
        const float sum = sum_of(e, ASC_F32);
        const float logarithm = static_cast<float>(elementary::log(sum));
        for (size_t i = 0; i < x.size(); ++i) x[i] = run.op == ASC_SOFTMAX ? e[i] / sum : (x[i] - most) - logarithm;
        put_row(run, row, x, good);
        put_beside(run, run.bytes.dst1, row, copies, beside, sum, good);
        put_beside(run, run.bytes.dst2, row, copies, beside, most, good);
    }
}

// The first number of a row's block in an operand beside the data.
float get_beside(const TileRun &run, const Bytes &bytes, uint64_t row, uint32_t dtype, bool &good) {
    const uint64_t at = bytes.begin + row * 32;
    good = good && !std::memchr(run.valid + at, 0, bytes_of_dtype(dtype));
    return get(dtype, run.data + at);
}

void softmax_with_given_sums(TileRun &run) {
    const uint32_t beside = run.floats_beside ? uint32_t{ASC_F32} : run.dtype;
    for (uint64_t row = 0; row < run.tile.valid_rows; ++row) {
        bool good = true;
        std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, run.tile.valid_columns, good);
        const float sum = get_beside(run, run.bytes.src1, row, beside, good),
                    most = get_beside(run, run.bytes.src2, row, beside, good);
        for (float &value : x) value = static_cast<float>(elementary::exp(value - most)) / sum;
        put_row(run, row, x, good);
    }
}

// A softmax over rows that arrive in parts: sum and max are carried from part to part. The first version divides by the
// sum at once, the second leaves the division to the end.
void softmax_in_parts(TileRun &run) {
    const bool divides = run.op == ASC_SOFTMAXFLASH, update = run.tile.flags & 2;
    const uint32_t beside = run.floats_beside ? uint32_t{ASC_F32} : run.dtype;
    const uint64_t copies = 32 / bytes_of_dtype(beside);
    for (uint64_t row = 0; row < run.tile.valid_rows; ++row) {
        bool good = true;
        std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, run.tile.valid_columns, good);
        float most = x[0], factor = 1, before = 0;
        for (float value : x) most = beats(ASC_REDUCE_MAX, value, most) ? value : most;
        if (update) {
            const float known = get_beside(run, run.bytes.src2, row, beside, good);
            most = beats(ASC_REDUCE_MAX, known, most) ? known : most;
            factor = static_cast<float>(elementary::exp(known - most));
            before = factor * get_beside(run, run.bytes.src1, row, beside, good);
        }
        for (float &value : x) value = static_cast<float>(elementary::exp(value - most));
        const float sum = before + sum_of(x, ASC_F32);
        if (divides) {
            for (float &value : x) value /= sum;
            factor = before / sum;
        }
        put_row(run, row, x, good);
        put_beside(run, run.bytes.dst1, row, copies, beside, sum, good);
        put_beside(run, run.bytes.dst2, row, copies, beside, most, good);
        put_beside(run, run.bytes.dst3, row, 32 / run.element, run.dtype, factor, good);
    }
}

void row_sums(TileRun &run) {
    for (uint64_t row = 0; row < run.tile.rows; ++row) {
        bool good = true;
        const std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, run.tile.valid_columns, good);
        const float sum = sum_of(x, run.dtype);
        const float value = run.op == ASC_MEAN ? sum * (1.0f / static_cast<float>(x.size())) : sum;
        put_beside(run, run.bytes.dst, row, 1, run.dtype, value, good);
    }
}

void running_sums(TileRun &run) {
    const uint64_t rows = run.tile.rows, columns = run.tile.columns;
    std::vector<float> above(columns, 0);
    bool good_above = true;
    for (uint64_t row = 0; row < rows; ++row) {
        bool good = true;
        std::vector<float> x = row_of(run, run.bytes.src0, row, columns, columns, good);
        if (run.tile.axis == 0) {
            for (uint64_t i = 0; i < columns; ++i) x[i] = above[i] + x[i];
            good = good_above = good && good_above;
        } else {
            for (uint64_t i = 1; i < columns; ++i) x[i] = x[i - 1] + x[i];
        }
        above = x;
        put_row(run, row, x, good);
        if (row + 1 == rows && run.bytes.dst1.begin != run.bytes.dst1.end) {
            for (uint64_t i = 0; i < columns; ++i) put_beside(run, run.bytes.dst1, i, 1, run.dtype, x[i], good);
        }
    }
}

// Copies elements with their validity: from(row, column) is the source element, or nothing for the scalar.
template <class From>
void rearrange(TileRun &run, uint64_t columns, From from) {
    const uint32_t element = run.element;
    const std::vector<uint8_t> data(run.data + run.bytes.src0.begin, run.data + run.bytes.src0.end);
    const std::vector<uint8_t> valid(run.valid + run.bytes.src0.begin, run.valid + run.bytes.src0.end);
    for (uint64_t row = 0; row < run.tile.rows; ++row) {
        for (uint64_t column = 0; column < columns; ++column) {
            const uint64_t at = run.bytes.dst.begin + (row * columns + column) * element;
            const int64_t source = from(row, column);
            if (source < 0) {
                std::memcpy(run.data + at, &run.scalar, element);
                std::memset(run.valid + at, 1, element);
            } else {
                std::memcpy(run.data + at, &data[static_cast<uint64_t>(source) * element], element);
                std::memcpy(run.valid + at, &valid[static_cast<uint64_t>(source) * element], element);
            }
        }
    }
}

void normalise(TileRun &run) {
    const bool layer = run.op == ASC_LAYERNORM;
    const float epsilon = scalar_of(run);
    const uint64_t n = run.tile.valid_columns;
    bool weights_good = true;
    const std::vector<float> gamma = row_of(run, run.bytes.src1, 0, n, n, weights_good);
    const std::vector<float> beta =
        layer ? row_of(run, run.bytes.src2, 0, n, n, weights_good) : std::vector<float>(n, 0.0f);
    for (uint64_t row = 0; row < run.tile.valid_rows; ++row) {
        bool good = weights_good;
        std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, n, good), squares(n);
        const float mean = layer ? sum_of(x, ASC_F32) / static_cast<float>(n) : 0.0f;
        for (uint64_t i = 0; i < n; ++i) squares[i] = (x[i] - mean) * (x[i] - mean);
        const float variance = sum_of(squares, ASC_F32) / static_cast<float>(n);
        const float scale = 1.0f / static_cast<float>(__builtin_sqrt(static_cast<double>(variance + epsilon)));
        for (uint64_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
        put_row(run, row, x, good);
        put_beside(run, run.bytes.dst1, row, 1, run.dtype, mean, good);
        put_beside(run, run.bytes.dst2, row, 1, run.dtype, variance, good);
    }
}

// Normalises groups of channels: a row holds `axis` channels, each with its own weight.
void normalise_groups(TileRun &run) {
    const uint64_t n = run.tile.columns, channels = run.tile.axis, each = n / channels, groups = run.tile.valid_rows;
    const float epsilon = scalar_of(run);
    for (uint64_t row = 0; row < run.tile.rows; ++row) {
        bool good = true;
        const uint64_t group = row % groups;
        std::vector<float> x = row_of(run, run.bytes.src0, row, n, n, good), squares(n);
        const std::vector<float> gamma = row_of(run, run.bytes.src1, group, channels, channels, good),
                                 beta = row_of(run, run.bytes.src2, group, channels, channels, good);
        const float mean = sum_of(x, ASC_F32) / static_cast<float>(n);
        for (uint64_t i = 0; i < n; ++i) squares[i] = (x[i] - mean) * (x[i] - mean);
        const float variance = sum_of(squares, ASC_F32) / static_cast<float>(n);
        const float scale = 1.0f / static_cast<float>(__builtin_sqrt(static_cast<double>(variance + epsilon)));
        for (uint64_t i = 0; i < n; ++i) x[i] = (x[i] - mean) * scale * gamma[i / each] + beta[i / each];
        put_row(run, row, x, good);
        put_beside(run, run.bytes.dst1, row, 1, run.dtype, mean, good);
        put_beside(run, run.bytes.dst2, row, 1, run.dtype, variance, good);
    }
}

void select_by_bytes(TileRun &run) {
    const uint64_t width = run.tile.flags / 256, pitch = run.tile.axis, wanted = run.tile.flags & 1;
    for (uint64_t i = 0, n = static_cast<uint64_t>(run.tile.rows) * run.tile.columns; i < n; ++i) {
        const uint64_t mask = run.bytes.src1.begin + (i / run.tile.columns * pitch + i % run.tile.columns) * width,
                       from = run.bytes.src0.begin + i * run.element, to = run.bytes.dst.begin + i * run.element;
        const bool set = std::any_of(run.data + mask, run.data + mask + width, [](uint8_t byte) { return byte != 0; });
        const bool good = !std::memchr(run.valid + mask, 0, width);
        if (set == wanted) {
            std::memcpy(run.data + to, run.data + from, run.element);
            std::memset(run.valid + to, good && !std::memchr(run.valid + from, 0, run.element), run.element);
        } else {
            std::memcpy(run.data + to, &run.scalar, run.element);
            std::memset(run.valid + to, good, run.element);
        }
    }
}

// Sorts into pairs of value and index, the largest first: each row, or all rows as one.
void sort_into_pairs(TileRun &run) {
    const uint64_t all = static_cast<uint64_t>(run.tile.rows) * run.tile.columns,
                   each = run.tile.flags & 1 ? all : run.tile.columns;
    std::vector<uint64_t> order(each);
    for (uint64_t first = 0; first < all; first += each) {
        bool good = true;
        const std::vector<float> x = row_of(run, run.bytes.src0, first / each, each, each, good);
        good = good && !std::memchr(run.valid + run.bytes.src1.begin + first * 4, 0, each * 4);
        std::iota(order.begin(), order.end(), uint64_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](uint64_t a, uint64_t b) { return beats(ASC_REDUCE_MAX, x[a], x[b]); });
        for (uint64_t i = 0; i < each; ++i) {
            uint8_t *at = run.data + run.bytes.dst.begin + (first + i) * 8;
            std::memset(at, 0, 8);
            put(run.dtype, at, x[order[i]]);
            std::memcpy(at + 4, run.data + run.bytes.src1.begin + (first + order[i]) * 4, 4);
        }
        std::memset(run.valid + run.bytes.dst.begin + first * 8, good, each * 8);
    }
}

void take_pairs_apart(TileRun &run) {
    for (uint64_t i = 0, n = static_cast<uint64_t>(run.tile.rows) * run.tile.columns; i < n; ++i) {
        const uint64_t from = run.bytes.src0.begin + i * 8, value = run.bytes.dst.begin + i * run.element,
                       index = run.bytes.dst1.begin + i * 4;
        for (uint8_t *bytes : {run.data, run.valid}) {
            std::memcpy(bytes + value, bytes + from, run.element);
            std::memcpy(bytes + index, bytes + from + 4, 4);
        }
    }
}

void top_of_rows(TileRun &run) {
    const bool ascending = run.tile.flags & 1, numbered = run.bytes.src1.begin != run.bytes.src1.end;
    const uint64_t kept = run.tile.axis, block = 32 / run.element;
    const uint64_t pitch = (kept + block - 1) / block * block, index_pitch = (kept + 7) / 8 * 8;
    for (uint64_t row = 0; row < run.tile.rows; ++row) {
        bool good = true;
        const std::vector<float> x = row_of(run, run.bytes.src0, row, run.tile.columns, run.tile.valid_columns, good);
        std::vector<uint32_t> order(x.size());
        std::iota(order.begin(), order.end(), 0u);
        const uint32_t better = ascending ? ASC_REDUCE_MIN : ASC_REDUCE_MAX;
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return beats(better, x[a], x[b]); });
        for (uint64_t i = 0; i < std::min<uint64_t>(kept, x.size()); ++i) {
            const uint64_t at = run.bytes.dst.begin + (row * pitch + i) * run.element,
                           place = run.bytes.dst1.begin + (row * index_pitch + i) * 4;
            put(run.dtype, run.data + at, x[order[i]]);
            std::memset(run.valid + at, good, run.element);
            const uint64_t number = run.bytes.src1.begin + order[i] * 4ull;
            std::memcpy(run.data + place, numbered ? static_cast<const void *>(run.data + number) : &order[i], 4);
            std::memset(run.valid + place, good && (!numbered || !std::memchr(run.valid + number, 0, 4)), 4);
        }
    }
}

}  // namespace

void run_tile(TileRun &run) {
    const uint64_t columns = run.tile.columns, left = run.tile.flags % 256, right = run.tile.flags / 256,
                   used = run.tile.valid_columns;
    switch (run.op) {
        case ASC_SOFTMAX:
        case ASC_LOGSOFTMAX: return softmax(run);
        case ASC_SUM:
        case ASC_MEAN: return row_sums(run);
        case ASC_CUMSUM: return running_sums(run);
        case ASC_BROADCAST:
            return rearrange(run, columns, [&](uint64_t row, uint64_t column) {
                return static_cast<int64_t>(run.tile.axis == 0 ? column : row);
            });
        case ASC_PAD:
            return rearrange(run, left + used + right, [&](uint64_t row, uint64_t column) {
                return column < left || column >= left + used ? int64_t{-1}
                                                              : static_cast<int64_t>(row * columns + column - left);
            });
        case ASC_UNPAD:
            return rearrange(run, used, [&](uint64_t row, uint64_t column) {
                return static_cast<int64_t>(row * columns + std::min(column + left, columns - 1));
            });
        case ASC_LAYERNORM:
        case ASC_RMSNORM: return normalise(run);
        case ASC_TOPK: return top_of_rows(run);
        case ASC_SORT: return sort_into_pairs(run);
        case ASC_EXTRACT: return take_pairs_apart(run);
        case ASC_SIMPLESOFTMAX: return softmax_with_given_sums(run);
        case ASC_SOFTMAXFLASH:
        case ASC_SOFTMAXFLASHV2: return softmax_in_parts(run);
        case ASC_QUANT: return quantise(run);
        case ASC_DEQUANT: return dequantise(run);
        case ASC_ANTIQUANT: return antiquantise(run);
        case ASC_GROUPNORM: return normalise_groups(run);
        default: return select_by_bytes(run);
    }
}

}  // namespace sim

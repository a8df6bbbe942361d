// The layout of matrices in the cube's memories.
#pragma once
#include <cstdint>

namespace sim {

inline constexpr uint32_t fractal_bytes = 512, max_repeat = 255;

// L0C stores an (m, n) matrix in columns of 16 elements, each `rows` long, with 4 bytes an element.
constexpr uint64_t result_place(uint64_t i, uint64_t j, uint64_t rows) {
    return (j / 16 * rows * 16 + i * 16 + j % 16) * 4;
}

}  // namespace sim

// How the cube's memories lay out matrices.
#pragma once
#include <cstdint>

namespace sim {

inline constexpr uint32_t fractal_bytes = 512, max_repeat = 255;

// L0C is (m, n) in columns of 16, each `rows` long, 4 bytes an element.
constexpr uint64_t result_place(uint64_t i, uint64_t j, uint64_t rows) {
    return (j / 16 * rows * 16 + i * 16 + j % 16) * 4;
}

}  // namespace sim

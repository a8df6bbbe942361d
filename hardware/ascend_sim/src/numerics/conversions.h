// Cast: the supported pairs of types and rounding modes, and their results.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {

// Rounding modes of a pair of types, as bits by asc_round; 0 if the Cast does not exist.
uint32_t cast_modes(uint32_t dst_dtype, uint32_t src_dtype);
void convert(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round, uint8_t *dst, const uint8_t *src, size_t n);

// Converts one element to a number, and a number to an element: rounded, integers saturated.
double value_of(uint32_t dtype, const uint8_t *at);
void put_value(uint32_t dtype, uint8_t *at, double value, uint32_t round);

uint8_t four_bits(double value, uint32_t round);

// One element formatted for messages.
std::string value_text(uint32_t dtype, const uint8_t *at);

}  // namespace sim

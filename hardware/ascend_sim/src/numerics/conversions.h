// Cast: which pairs of types and rounding modes there are, and what they give.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {

// Rounding modes of a pair of types as bits by asc_round; 0 if there is no such Cast.
uint32_t cast_modes(uint32_t dst_dtype, uint32_t src_dtype);
void convert(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round, uint8_t *dst, const uint8_t *src, size_t n);

// One element as a number, and a number as an element: rounded, whole numbers saturated.
double value_of(uint32_t dtype, const uint8_t *at);
void put_value(uint32_t dtype, uint8_t *at, double value, uint32_t round);

uint8_t four_bits(double value, uint32_t round);

// One element as a person would write it.
std::string value_text(uint32_t dtype, const uint8_t *at);

}  // namespace sim

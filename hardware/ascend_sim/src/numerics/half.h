// half and bfloat16 as bit patterns, converted in software so that every machine gives the same results.
//
// The conversions are branch-free: the compiler turns loops over them into vector code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sim {

template <class To, class From>
inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline uint32_t bits_of(float value) { return bit_cast<uint32_t>(value); }
inline float float_of(uint32_t bits) { return bit_cast<float>(bits); }

inline float float_from_half(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, rest = static_cast<uint32_t>(half & 0x7fffu)
                                                                              << 13;
    const uint32_t finite = bits_of(float_of(rest) * 0x1p112f);  // exact, even if the half is subnormal
    return float_of((rest >= 0x0f800000u ? rest | 0x7f800000u : finite) | sign);
}

// Rounds to nearest, ties to even; overflow becomes infinity.
inline uint16_t half_from_float(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t rest = bits & 0x7fffffffu;
    const uint32_t odd = (rest >> 13) & 1u;
    const uint32_t normal = (rest - (112u << 23) + 0xfffu + odd) >> 13;
    // Below the normal range an addition in float rounds at the right bit.
    const uint32_t tiny = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
    uint32_t half = rest < 0x38800000u ? tiny : normal;
    half = rest >= 0x477ff000u ? 0x7c00u : half;
    half = rest > 0x7f800000u ? 0x7e00u : half;
    return static_cast<uint16_t>(half | sign);
}

inline float float_from_bfloat(uint16_t value) { return float_of(static_cast<uint32_t>(value) << 16); }

inline uint16_t bfloat_from_float(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

typedef uint16_t __attribute__((may_alias)) HalfBits;

inline void floats_from_halves(float *to, const HalfBits *from, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = float_from_half(from[i]);
}

inline void halves_from_floats(HalfBits *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = half_from_float(from[i]);
}

}  // namespace sim

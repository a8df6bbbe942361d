// Element types by their code in abi.h.
#pragma once
#include <cstdint>

#include "../../include/abi.h"

namespace sim {

inline constexpr uint32_t dtype_codes = 14;

// Bytes of one element; 0 for types without whole bytes (int4 is packed) and for unknown codes.
constexpr uint32_t bytes_of_dtype(uint32_t dtype) {
    constexpr uint8_t bytes[dtype_codes] = {4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1, 0, 0};
    return dtype < dtype_codes ? bytes[dtype] : 0;
}

constexpr const char *name_of_dtype(uint32_t dtype) {
    constexpr const char *names[dtype_codes] = {"float", "half",   "bfloat16", "int8",   "uint8", "int16", "uint16",
                                                "int32", "uint32", "int64",    "uint64", "bool",  "?",     "int4"};
    return dtype < dtype_codes ? names[dtype] : "?";
}

// Sets of element types, as bits by code.
constexpr uint32_t bit_of(uint32_t dtype) { return 1u << dtype; }
inline constexpr uint32_t floats = bit_of(ASC_F32) | bit_of(ASC_F16);
inline constexpr uint32_t numbers = floats | bit_of(ASC_I16) | bit_of(ASC_I32);
inline constexpr uint32_t words16 = bit_of(ASC_I16) | bit_of(ASC_U16);
inline constexpr uint32_t words32 = bit_of(ASC_I32) | bit_of(ASC_U32);
inline constexpr uint32_t movable = numbers | words16 | words32 | bit_of(ASC_BF16);

}  // namespace sim

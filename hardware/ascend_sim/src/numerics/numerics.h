// The arithmetic of the vector unit, over plain rows of elements, without memories or masks.
#pragma once
#include <cstddef>
#include <cstdint>

#include "half.h"

namespace sim {

// Types that may alias rows of bytes.
template <class T>
struct Aliasing;
#define SIM_ALIASING(type)                                                                                             \
    template <> struct Aliasing<type> { typedef type __attribute__((may_alias)) row; };
SIM_ALIASING(float)
SIM_ALIASING(int8_t)
SIM_ALIASING(uint8_t)
SIM_ALIASING(int16_t)
SIM_ALIASING(uint16_t)
SIM_ALIASING(int32_t)
SIM_ALIASING(uint32_t)
SIM_ALIASING(int64_t)
SIM_ALIASING(uint64_t)
#undef SIM_ALIASING
template <class T>
using Row = typename Aliasing<T>::row;

using Kernel = void (*)(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t scalar, size_t n);

// One operation of asc_vector_op.
struct VectorOp {
    const char *name;
    uint8_t sources;  // tensors it reads, not counting the old destination
    bool reads_dst;
    bool accumulates;  // may accumulate into one destination over its repeats
    uint32_t dtypes;   // as bits
};

extern const VectorOp vector_ops[];
// The kernel for a supported type, or null. Only Axpy and MulAddDst accept a source of another type.
Kernel vector_kernel(uint32_t op, uint32_t dtype, uint32_t src_dtype);

// data = old (+, max, min) data, for modes 1, 2, 3.
void combine(uint32_t mode, uint32_t dtype, uint8_t *data, const uint8_t *old, size_t n);

// Replaces every not-a-number by the device's single bit pattern, independent of the host.
inline float canonical(float value) { return value == value ? value : float_of(0x7fc00000u); }

// Rows of half are widened, computed and rounded in pieces of this many elements.
inline constexpr size_t half_chunk = 256;

}  // namespace sim

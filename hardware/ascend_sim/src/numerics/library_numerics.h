// The arithmetic of the high-level vector functions, over plain rows of elements.
#pragma once
#include <cstdint>

#include "numerics.h"

namespace sim {

// One function of asc_library_op.
struct LibraryOp {
    const char *name;
    uint8_t sources;
    uint8_t tmp_repeats;  // minimum temporary space, in repeats of float (an estimate of the library's)
    uint32_t dtypes;
};

extern const LibraryOp library_ops[];
// The row kernel, or null. The scalar is a limit, Swish's beta, or float beta for SwiGLU, as raw bits.
Kernel library_kernel(uint32_t op, uint32_t dtype);

}  // namespace sim

// Operand sizes and temporary space of the row-wise library functions.
#pragma once
#include <cstdint>

#include "../../include/abi.h"
#include "local_memory.h"

namespace sim {

struct TileOp {
    const char *name;
    uint32_t dtypes;
    bool aligned_rows;  // rows are whole blocks of 32 bytes
    bool needs_tmp;
};

// Bytes of each operand; 0 if the function does not have it.
struct TileShape {
    uint64_t dst = 0, dst1 = 0, dst2 = 0, dst3 = 0, src0 = 0, src1 = 0, src2 = 0;
    bool optional_results = false;  // dst1 and dst2 may be absent
    bool optional_sources = false;  // src1 and src2 may be absent
};

struct TileBytes { Bytes dst, dst1, dst2, dst3, src0, src1, src2; };

TileShape tile_shape(uint32_t op, const asc_tile &tile, uint32_t element);
// Minimum temporary space: an estimate of the library's, which depends on the tiling.
uint64_t tile_tmp_bytes(uint32_t op, const asc_tile &tile);

constexpr bool is_softmax(uint32_t op) {
    return op == ASC_SOFTMAX || op == ASC_LOGSOFTMAX || op == ASC_SIMPLESOFTMAX || op == ASC_SOFTMAXFLASH ||
           op == ASC_SOFTMAXFLASHV2;
}

}  // namespace sim

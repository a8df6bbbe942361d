// The arithmetic of the row-wise library functions.
#pragma once
#include <cstdint>

#include "executor/tiles.h"

namespace sim {

struct TileRun {
    uint32_t op, dtype, element;
    asc_tile tile;
    uint64_t scalar;
    bool floats_beside;  // sum and max of half data are float
    TileBytes bytes;
    uint8_t *data, *valid;  // UB, from its start
};

void run_tile(TileRun &run);

}  // namespace sim

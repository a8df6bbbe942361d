// AscendQuant, AscendDequant and AscendAntiQuant: scales and offsets between integers and floating-point numbers.
#pragma once
#include "tile_numerics.h"

namespace sim {

void quantise(TileRun &run);
void dequantise(TileRun &run);
void antiquantise(TileRun &run);

}  // namespace sim

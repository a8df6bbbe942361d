// Tilings of the row-wise functions: plain structs, filled by the host function.
#pragma once
#include <cstdint>

struct SoftMaxTiling {
    uint32_t srcM = 0, srcK = 0, srcSize = 0, outMaxM = 0, outMaxK = 0, outMaxSize = 0, splitM = 0, splitK = 0,
             splitSize = 0;
    uint32_t reduceM = 0, reduceK = 0, reduceSize = 0, rangeM = 0, tailM = 0, tailSplitSize = 0, tailReduceSize = 0;
};
using LogSoftMaxTiling = SoftMaxTiling;

struct LayerNormTiling { uint32_t bLength = 0, sLength = 0, hLength = 0, originalHLength = 0; };
using RmsNormTiling = LayerNormTiling;

struct GroupNormTiling { uint32_t n = 0, c = 0, hw = 0, g = 0; };

struct PadTiling { uint32_t srcHeight = 0, srcWidth = 0, srcOriWidth = 0, widthWithoutLastBlock = 0; };
using UnPadTiling = PadTiling;

struct TopkTiling { int32_t tmpLocalSize = 0, allDataSize = 0, innerDataSize = 0, sortRepeat = 0; };

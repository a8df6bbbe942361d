// optiling: the tiling of a matrix product.
#pragma once
#include <cstdint>

#include "tiling/tiling_api.h"

namespace optiling {

// The product's tiling with the accessors that tiling classes have.
struct TCubeTiling : ::TCubeTiling {
#define KERNEL_GYM_CUBE(field)                                                                                         \
    void set_##field(int32_t value) { field = value; }                                                                 \
    int32_t get_##field() const { return field; }
    // clang-format off
    KERNEL_GYM_CUBE(usedCoreNum) KERNEL_GYM_CUBE(M) KERNEL_GYM_CUBE(N) KERNEL_GYM_CUBE(Ka) KERNEL_GYM_CUBE(Kb)
    KERNEL_GYM_CUBE(singleCoreM) KERNEL_GYM_CUBE(singleCoreN) KERNEL_GYM_CUBE(singleCoreK) KERNEL_GYM_CUBE(baseM)
    KERNEL_GYM_CUBE(baseN) KERNEL_GYM_CUBE(baseK) KERNEL_GYM_CUBE(depthA1) KERNEL_GYM_CUBE(depthB1)
    KERNEL_GYM_CUBE(stepM) KERNEL_GYM_CUBE(stepN) KERNEL_GYM_CUBE(isBias) KERNEL_GYM_CUBE(transLength)
    KERNEL_GYM_CUBE(iterateOrder) KERNEL_GYM_CUBE(shareMode) KERNEL_GYM_CUBE(shareL1Size)
    KERNEL_GYM_CUBE(shareL0CSize) KERNEL_GYM_CUBE(shareUbSize) KERNEL_GYM_CUBE(batchM) KERNEL_GYM_CUBE(batchN)
    KERNEL_GYM_CUBE(singleBatchM) KERNEL_GYM_CUBE(singleBatchN) KERNEL_GYM_CUBE(stepKa) KERNEL_GYM_CUBE(stepKb)
    KERNEL_GYM_CUBE(dbL0A) KERNEL_GYM_CUBE(dbL0B) KERNEL_GYM_CUBE(dbL0C) KERNEL_GYM_CUBE(BatchNum)
    KERNEL_GYM_CUBE(ALayoutInfoB) KERNEL_GYM_CUBE(ALayoutInfoS) KERNEL_GYM_CUBE(ALayoutInfoN)
    KERNEL_GYM_CUBE(ALayoutInfoG) KERNEL_GYM_CUBE(ALayoutInfoD) KERNEL_GYM_CUBE(BLayoutInfoB)
    KERNEL_GYM_CUBE(BLayoutInfoS) KERNEL_GYM_CUBE(BLayoutInfoN) KERNEL_GYM_CUBE(BLayoutInfoG)
    KERNEL_GYM_CUBE(BLayoutInfoD) KERNEL_GYM_CUBE(CLayoutInfoB) KERNEL_GYM_CUBE(CLayoutInfoS1)
    KERNEL_GYM_CUBE(CLayoutInfoN) KERNEL_GYM_CUBE(CLayoutInfoG) KERNEL_GYM_CUBE(CLayoutInfoS2)
    // clang-format on
#undef KERNEL_GYM_CUBE
};

}  // namespace optiling

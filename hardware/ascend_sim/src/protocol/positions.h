// The memory of each logical position (TPosition). Both halves allocate by it.
#pragma once
#include <cstdint>

#include "../../include/abi.h"

namespace sim {

constexpr uint32_t space_of(uint32_t position) {
    switch (position) {
        case ASC_POS_A1:
        case ASC_POS_B1:
        case ASC_POS_C1:
        case ASC_POS_TSCM: return ASC_L1;
        case ASC_POS_A2: return ASC_L0A;
        case ASC_POS_B2: return ASC_L0B;
        case ASC_POS_CO1: return ASC_L0C;
        case ASC_POS_C2: return ASC_BT;
        case ASC_POS_C2PIPE2GM: return ASC_FB;
        default: return ASC_UB;
    }
}

// The position that holds the buffers of a queue.
constexpr uint32_t home_of(uint32_t source, uint32_t destination) {
    return destination == ASC_POS_GM || destination == ASC_POS_CO2 ? source : destination;
}

}  // namespace sim

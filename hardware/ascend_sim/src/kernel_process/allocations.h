// The allocations of one core: the address and state of each buffer.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "../../include/abi.h"

namespace sim::kernel_process {

struct Queue {
    uint32_t source = 0, destination = 0;
    int32_t depth = 0;
    uint32_t bytes = 0;  // bytes of one buffer
    uint32_t space = ASC_UB;
    std::deque<uint32_t> idle;  // free buffers, in the order in which they were freed
    std::deque<uint32_t> enqueued;
};

struct Allocations {
    std::array<uint32_t, ASC_SPACES> next{};  // first free address of each memory
    std::vector<Queue> queues;
    uint8_t events[ASC_PIPES][ASC_PIPES] = {};  // ids held by AllocEventID, as bits
};

// The memory of a logical position.
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

constexpr uint32_t queue_space(uint32_t source, uint32_t destination) {
    const bool leaves = destination == ASC_POS_GM || destination == ASC_POS_CO2;
    return space_of(leaves ? source : destination);
}

constexpr uint32_t capacity(uint32_t space) {
    constexpr uint32_t bytes[ASC_SPACES] = {192 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10};
    return bytes[space];
}

constexpr uint32_t in_blocks(uint32_t bytes) { return (bytes + 31) / 32 * 32; }

}  // namespace sim::kernel_process

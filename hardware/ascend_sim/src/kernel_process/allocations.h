// The allocations of one core: the address and state of each buffer.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "protocol/positions.h"

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

constexpr uint32_t capacity(uint32_t space) {
    constexpr uint32_t bytes[ASC_SPACES] = {192 << 10, 512 << 10, 64 << 10, 64 << 10, 128 << 10, 1 << 10, 2 << 10};
    return bytes[space];
}

constexpr uint32_t in_blocks(uint32_t bytes) { return (bytes + 31) / 32 * 32; }

}  // namespace sim::kernel_process

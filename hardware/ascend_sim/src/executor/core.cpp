#include "core.h"

#include "protocol/diagnostics.h"

namespace sim {

uint32_t producer_at(uint32_t source) {
    switch (source) {
        case ASC_POS_GM:
        case ASC_POS_VECIN: return ASC_MTE2;
        case ASC_POS_A1:
        case ASC_POS_B1:
        case ASC_POS_C1:
        case ASC_POS_A2:
        case ASC_POS_B2:
        case ASC_POS_C2:
        case ASC_POS_TSCM:
        case ASC_POS_C2PIPE2GM: return ASC_MTE1;
        case ASC_POS_CO1: return ASC_M;
        case ASC_POS_CO2: return ASC_FIX;
        default: return ASC_V;
    }
}

uint32_t consumer_at(uint32_t source, uint32_t destination) {
    switch (destination) {
        case ASC_POS_GM: return source == ASC_POS_CO1 ? ASC_FIX : ASC_MTE3;
        case ASC_POS_VECOUT: return ASC_MTE3;
        case ASC_POS_A1:
        case ASC_POS_B1:
        case ASC_POS_C1:
        case ASC_POS_TSCM: return ASC_MTE1;
        case ASC_POS_A2:
        case ASC_POS_B2:
        case ASC_POS_C2: return ASC_M;
        case ASC_POS_CO1:
        case ASC_POS_CO2:
        case ASC_POS_C2PIPE2GM: return ASC_FIX;
        default: return ASC_V;
    }
}

uint32_t Queue::producer() const { return producer_at(source); }
uint32_t Queue::consumer() const { return consumer_at(source, destination); }

std::string Queue::name(uint32_t id) const {
    const uint32_t position = destination == ASC_POS_GM || destination == ASC_POS_CO2 ? source : destination;
    return text("%s queue %u", name_of_position(position), id);
}

Core::Core(uint8_t poison) {
    for (uint32_t space = 0; space < ASC_SPACES; ++space) memories_.emplace_back(space, poison);
}

void Core::reset(uint32_t instance) {
    id = instance;
    waiting = false;
    for (LocalMemory &memory : memories_) memory.reset();
    clocks.join_all();  // the previous block's instructions are finished
    restart_buffers();
    has_pipe = false;
    high_addr = 0;
    for (auto &row : flags) {
        for (auto &ids : row) {
            for (Flag &flag : ids) flag = Flag();
        }
    }
    counter = false;
    mask[0] = mask[1] = ~0ull;
    atomic = atomic_dtype = 0;
    pad_set = false;
    pad_bits = gathered = merged = bypassing = 0;
    fix = {};
    copied_out.clear();
    copied_in.clear();
    dirty_lines.clear();
}

void Core::restart_buffers() {
    for (uint32_t &addr : next_addr) addr = 0;
    allocations.clear();
    freed.assign(capacity_of(ASC_UB) / 32, 0);
    queues.clear();
    for (auto &row : in_flight) std::fill(std::begin(row), std::end(row), 0u);
}

std::string Core::describe(uint32_t space, uint32_t addr) const {
    for (const Allocation &allocation : allocations) {
        if (allocation.space != space || addr < allocation.addr) continue;
        const uint32_t slot = allocation.bytes ? (addr - allocation.addr) / allocation.bytes : 0;
        if (slot >= allocation.count) continue;
        if (allocation.queue < 0) return text("TBuf of line %d", allocation.line);
        return queues[static_cast<size_t>(allocation.queue)].name(static_cast<uint32_t>(allocation.queue)) +
               text(" buffer %u", slot);
    }
    return "unallocated";
}

const QueueBuffer *Core::queue_buffer(uint32_t space, uint32_t addr) const {
    for (const Allocation &allocation : allocations) {
        if (allocation.queue < 0 || allocation.space != space || addr < allocation.addr) continue;
        const uint32_t slot = allocation.bytes ? (addr - allocation.addr) / allocation.bytes : 0;
        const Queue &queue = queues[static_cast<size_t>(allocation.queue)];
        if (slot < allocation.count && slot < queue.buffers.size()) return &queue.buffers[slot];
    }
    return nullptr;
}

}  // namespace sim

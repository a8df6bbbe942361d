// The kernel process's copy of the on-chip allocations. The device checks every step against its own copy.
#include "kernel_process.h"

using namespace sim::kernel_process;

namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

Queue &queue_of(uint32_t id, int32_t line) {
    Allocations &own = allocations(line);
    if (id >= own.queues.size()) misuse(line, "this queue was made by another core or in the host function");
    return own.queues[id];
}

uint32_t take_front(std::deque<uint32_t> &addresses) {
    if (addresses.empty()) return kNowhere;
    const uint32_t first = addresses.front();
    addresses.pop_front();
    return first;
}

// Ends the process if there is no buffer; the device rejects the record with the reason.
asc_local buffer(const Queue &queue, uint32_t address, int32_t line) {
    if (address == kNowhere) give_up(line);
    return {address, queue.bytes, queue.space};
}

}  // namespace

uint32_t front::queue_open(uint32_t source, uint32_t destination, int32_t depth) {
    Allocations &own = allocations(0);
    own.queues.emplace_back();
    own.queues.back().source = source;
    own.queues.back().destination = destination;
    own.queues.back().depth = depth;
    own.queues.back().space = sim::space_of(sim::home_of(source, destination));
    return static_cast<uint32_t>(own.queues.size() - 1);
}

void front::queue_init(uint32_t id, uint32_t count, uint32_t bytes, int32_t line) {
    Queue &queue = queue_of(id, line);
    wire::init_queue(id, queue.source, queue.destination, queue.depth, count, bytes, line);
    queue.bytes = in_blocks(bytes);
    uint32_t &next = allocations(line).next[queue.space];
    for (uint32_t i = 0; i < count && i < 64; ++i, next += queue.bytes) queue.idle.push_back(next);
}

void front::queue_init_in(uint32_t id, asc_local rest, uint32_t count, uint32_t bytes, int32_t line) {
    Queue &queue = queue_of(id, line);
    wire::init_queue_in(id, queue.source, queue.destination, queue.depth, count, bytes, rest, line);
    queue.bytes = in_blocks(bytes);
    for (uint32_t i = 0; i < count && i < 64; ++i) queue.idle.push_back(rest.addr + i * queue.bytes);
}

void front::pool_reset(asc_local pool, int32_t line) {
    const auto inside = [&](const Queue &queue, uint32_t address) {
        return queue.space == pool.space && address >= pool.addr && address - pool.addr < pool.bytes;
    };
    for (Queue &queue : allocations(line).queues) {
        if (queue.idle.empty() || !inside(queue, queue.idle.front())) continue;
        queue.idle.clear();
        queue.enqueued.clear();
    }
    wire::reset_pool(pool, line);
}

asc_local front::buffer_init(uint32_t position, uint32_t bytes, int32_t line) {
    Allocations &own = allocations(line);
    wire::init_buffer(position, bytes, line);
    const uint32_t space = sim::space_of(position), address = own.next[space];
    own.next[space] += in_blocks(bytes);
    return {address, in_blocks(bytes), space};
}

asc_local front::queue_alloc(uint32_t id, int32_t line) {
    Queue &queue = queue_of(id, line);
    const uint32_t address = take_front(queue.idle);
    wire::alloc(id, address, line);
    return buffer(queue, address, line);
}

void front::queue_enqueue(uint32_t id, asc_local tensor, int32_t line) {
    Queue &queue = queue_of(id, line);
    wire::enqueue(id, tensor, line);
    queue.enqueued.push_back(tensor.addr);
}

asc_local front::queue_dequeue(uint32_t id, int32_t line) {
    Queue &queue = queue_of(id, line);
    const uint32_t address = take_front(queue.enqueued);
    wire::dequeue(id, address, line);
    return buffer(queue, address, line);
}

void front::queue_enqueue_as(uint32_t id, asc_local tensor, uint32_t from, uint32_t to, int32_t line) {
    Queue &queue = queue_of(id, line);
    wire::enqueue_as(id, tensor, from, to, line);
    queue.enqueued.push_back(tensor.addr);
}

asc_local front::queue_dequeue_as(uint32_t id, uint32_t from, uint32_t to, int32_t line) {
    Queue &queue = queue_of(id, line);
    const uint32_t address = take_front(queue.enqueued);
    wire::dequeue_as(id, address, from, to, line);
    return buffer(queue, address, line);
}

void front::queue_free(uint32_t id, asc_local tensor, int32_t line) {
    Queue &queue = queue_of(id, line);
    wire::free(id, tensor, line);
    queue.idle.push_back(tensor.addr);
}

uint32_t front::queue_length(uint32_t id) { return static_cast<uint32_t>(queue_of(id, 0).enqueued.size()); }
uint32_t front::queue_idle(uint32_t id) { return static_cast<uint32_t>(queue_of(id, 0).idle.size()); }

void front::tpipe_begin(int32_t line) {
    allocations(line).next = {};
    wire::tpipe(0, line);
}

void front::tpipe_reset(int32_t line) {
    Allocations &own = allocations(line);
    own.next = {};
    for (Queue &queue : own.queues) {
        queue.idle.clear();
        queue.enqueued.clear();
    }
    wire::tpipe(1, line);
}

asc_local front::unallocated(uint32_t space) {
    const uint32_t first = allocations(0).next[space % ASC_SPACES], size = capacity(space % ASC_SPACES);
    return {first, first < size ? size - first : 0, space};
}

// Returns the lowest free id, or -1; hold = 0 does not reserve it.
int32_t front::event_id(uint32_t source, uint32_t destination, uint32_t hold) {
    uint8_t &held = allocations(0).events[source % ASC_PIPES][destination % ASC_PIPES];
    for (int32_t id = 0; id < 8; ++id) {
        if (held >> id & 1) continue;
        if (hold) held = static_cast<uint8_t>(held | 1 << id);
        return id;
    }
    return -1;
}

void front::event_release(uint32_t source, uint32_t destination, int32_t id) {
    uint8_t &held = allocations(0).events[source % ASC_PIPES][destination % ASC_PIPES];
    if (id >= 0 && id < 8) held = static_cast<uint8_t>(held & ~(1 << id));
}

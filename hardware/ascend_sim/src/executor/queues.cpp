// TPipe, InitBuffer and the states of queue buffers. A buffer carries the clock of its producer to its consumer and
// back.
#include "protocol/positions.h"
#include "executor.h"
#include "tokens.h"

namespace sim {

namespace {
constexpr uint32_t max_queues = 4096, max_buffers = 64, reserved_ub = 184u << 10;

constexpr const char *name_of_state(BufferState state) {
    constexpr const char *names[] = {"free", "allocated", "already enqueued", "dequeued"};
    return names[static_cast<int>(state)];
}
}  // namespace

void Executor::tpipe(uint32_t reset, int32_t line) {
    Core &core = running(line);
    if (reset > 1) diagnostics_.fail(Rule::Protocol, "TPipe");
    core.restart_buffers();
    core.has_pipe = true;
    overhead(Call::TPipe);
    if (reset) barrier(ASC_ALL, line);
}

void Executor::name_buffers(Core &core, uint32_t space, uint64_t wanted, const char *what) const {
    std::string names;
    uint64_t total = wanted;
    for (const Allocation &allocation : core.allocations) {
        if (allocation.space != space || allocation.inside) continue;
        const uint64_t bytes = static_cast<uint64_t>(allocation.bytes) * allocation.count;
        total += bytes;
        names += text("%s of line %d: %u x %u = %llu, ", name_of_position(allocation.position), allocation.line,
                      allocation.count, allocation.bytes, static_cast<unsigned long long>(bytes));
    }
    diagnostics_.fail(Rule::Capacity, text("the buffers in %s take %llu bytes, but it has %u (", name_of_space(space),
                                           static_cast<unsigned long long>(total), capacity_of(space)) +
                                          names + text("%s: %llu)", what, static_cast<unsigned long long>(wanted)));
}

// Allocates the bytes of one InitBuffer and returns the first address.
uint32_t Executor::reserve(Core &core, uint32_t space, uint32_t bytes, const char *what) {
    if (space >= ASC_SPACES) diagnostics_.fail(Rule::Protocol, "InitBuffer in no memory");
    if (!core.has_pipe) diagnostics_.fail(Rule::BufferInit, "InitBuffer before the core has constructed a TPipe");
    const uint32_t addr = core.next_addr[space];
    if (bytes > capacity_of(space) - addr) name_buffers(core, space, bytes, what);
    core.next_addr[space] = addr + bytes;
    if (space == ASC_UB && addr + bytes > reserved_ub) {
        diagnostics_.warn(Rule::ReservedUb, text("the buffers in UB reach up to %u bytes", addr + bytes));
    }
    if (options_.compute) core.memory(space).forget(addr, addr + bytes);
    return addr;
}

// Checks the arguments of a queue's InitBuffer; returns the position that holds its buffers.
uint32_t Executor::check_queue(const Core &core, uint32_t id, uint32_t source, uint32_t destination, uint32_t count,
                               uint32_t bytes) const {
    if (id >= max_queues || source >= ASC_POSITIONS || destination >= ASC_POSITIONS)
        diagnostics_.fail(Rule::Protocol, "InitBuffer of no queue");
    if (count == 0 || count > max_buffers)
        diagnostics_.fail(Rule::BufferInit, text("InitBuffer with %u buffers", count));
    if (bytes == 0) diagnostics_.fail(Rule::BufferInit, "InitBuffer with 0 bytes");
    uint32_t held = count;
    for (const Allocation &allocation : core.allocations) held += allocation.count;
    if (held > max_buffers) diagnostics_.fail(Rule::BufferInit, text("InitBuffer makes %u buffers in one TPipe", held));
    if (id < core.queues.size() && core.queues[id].ready)
        diagnostics_.fail(Rule::QueueState, text("InitBuffer a second time on %s", core.queues[id].name(id).c_str()));
    return home_of(source, destination);
}

void Executor::place_queue(Core &core, uint32_t id, const Queue &made, uint32_t addr, uint32_t count) {
    uint64_t taken = 0;
    for (const Queue &other : core.queues) taken |= static_cast<uint64_t>(other.ready) << other.number;
    if (core.queues.size() <= id) core.queues.resize(id + 1);
    Queue &queue = core.queues[id] = made;
    while (taken >> queue.number & 1) ++queue.number;
    queue.ready = true;
    queue.buffers.resize(count);
    for (uint32_t slot = 0; slot < count; ++slot) {
        queue.buffers[slot].addr = addr + slot * queue.bytes;
        queue.idle.push_back(slot);
    }
    overhead(Call::InitBuffer);
}

void Executor::init_queue(uint32_t id, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                          uint32_t bytes, int32_t line) {
    Core &core = running(line);
    const uint32_t position = check_queue(core, id, source, destination, count, bytes), space = space_of(position);
    const uint64_t each = round_up(bytes, 32);
    const std::string what =
        text("this %s queue, %u x %llu", name_of_position(position), count, static_cast<unsigned long long>(each));
    if (each * count > capacity_of(space)) name_buffers(core, space, each * count, what.c_str());
    const uint32_t addr = reserve(core, space, static_cast<uint32_t>(each) * count, what.c_str());
    Queue queue;
    queue.source = source;
    queue.destination = destination;
    queue.depth = depth;
    queue.space = space;
    queue.bytes = static_cast<uint32_t>(each);
    place_queue(core, id, queue, addr, count);
    core.allocations.push_back({space, addr, queue.bytes, count, position, static_cast<int32_t>(id), line});
}

// Allocates bytes in a TBufPool, which lies in a buffer of this core; returns the first address.
uint32_t Executor::reserve_in(Core &core, const asc_local &rest, uint64_t bytes, const char *what) {
    const auto holds = [&](const Allocation &allocation) {
        return allocation.queue < 0 && allocation.space == rest.space && rest.addr >= allocation.addr &&
               static_cast<uint64_t>(rest.addr) + rest.bytes <=
                   static_cast<uint64_t>(allocation.addr) + allocation.bytes;
    };
    if (std::none_of(core.allocations.begin(), core.allocations.end(), holds)) {
        diagnostics_.fail(Rule::BufferInit, text("InitBuffer of %s in a TBufPool that has no bytes", what),
                          "call pipe.InitBufPool(pool, bytes) first");
    }
    if (bytes > rest.bytes) {
        diagnostics_.fail(Rule::Capacity, text("%s takes %llu bytes, but its TBufPool has %u left", what,
                                               static_cast<unsigned long long>(bytes), rest.bytes));
    }
    mark_freed(core, rest.space, rest.addr, static_cast<uint32_t>(bytes), false);
    if (options_.compute && bytes) core.memory(rest.space).forget(rest.addr, rest.addr + static_cast<uint32_t>(bytes));
    return rest.addr;
}

void Executor::init_queue_in(uint32_t id, uint32_t source, uint32_t destination, int32_t depth, uint32_t count,
                             uint32_t bytes, asc_local rest, int32_t line) {
    Core &core = running(line);
    const uint32_t position = check_queue(core, id, source, destination, count, bytes);
    if (space_of(position) != rest.space)
        diagnostics_.fail(Rule::Space,
                          text("a %s queue in a TBufPool in %s", name_of_position(position), name_of_space(rest.space)),
                          "pool and queue are in one memory");
    const uint64_t each = round_up(bytes, 32);
    const uint32_t addr = reserve_in(core, rest, each * count, "this queue");
    Queue queue;
    queue.source = source;
    queue.destination = destination;
    queue.depth = depth;
    queue.space = rest.space;
    queue.bytes = static_cast<uint32_t>(each);
    place_queue(core, id, queue, addr, count);
    // Inserted before the pool itself, so that messages name the queue.
    core.allocations.insert(core.allocations.begin(),
                            {rest.space, addr, queue.bytes, count, position, static_cast<int32_t>(id), line, true});
}

void Executor::init_buffer_in(asc_local rest, uint32_t bytes, int32_t line) {
    Core &core = running(line);
    if (bytes == 0) diagnostics_.fail(Rule::BufferInit, "InitBuffer with 0 bytes");
    reserve_in(core, rest, round_up(bytes, 32), "this buffer");
    overhead(Call::InitBuffer);
}

// Removes the pool's queues and waits until all their instructions are finished.
void Executor::reset_pool(asc_local pool, int32_t line) {
    Core &core = running(line);
    reserve_in(core, pool, 0, "Reset");
    for (size_t i = core.allocations.size(); i-- > 0;) {
        const Allocation &allocation = core.allocations[i];
        if (!allocation.inside || allocation.space != pool.space || allocation.addr < pool.addr ||
            allocation.addr - pool.addr >= pool.bytes)
            continue;
        Queue &queue = core.queues[static_cast<size_t>(allocation.queue)];
        for (const QueueBuffer &buffer : queue.buffers) {
            if (buffer.counted) --core.in_flight[queue.producer()][queue.consumer()];
        }
        queue = Queue();
        core.allocations.erase(core.allocations.begin() + static_cast<std::ptrdiff_t>(i));
    }
    mark_freed(core, pool.space, pool.addr, pool.bytes, false);
    barrier(ASC_ALL, line);
}

void Executor::init_buffer(uint32_t position, uint32_t bytes, int32_t line) {
    Core &core = running(line);
    if (position >= ASC_POSITIONS) diagnostics_.fail(Rule::Protocol, "InitBuffer at no position");
    if (bytes == 0) diagnostics_.fail(Rule::BufferInit, "InitBuffer with 0 bytes");
    uint32_t held = 1;
    for (const Allocation &allocation : core.allocations) held += allocation.count;
    if (held > max_buffers) diagnostics_.fail(Rule::BufferInit, text("InitBuffer makes %u buffers in one TPipe", held));
    const uint64_t each = round_up(bytes, 32);
    const uint32_t space = space_of(position);
    if (each > capacity_of(space)) name_buffers(core, space, each, "this TBuf");
    const uint32_t addr = reserve(core, space, static_cast<uint32_t>(each), "this TBuf");
    core.allocations.push_back({space, addr, static_cast<uint32_t>(each), 1, position, -1, line});
    overhead(Call::InitBuffer);
}

void Executor::static_alloc(uint32_t space, uint32_t addr, uint32_t bytes, int32_t line) {
    Core &core = running(line);
    const uint32_t capacity = capacity_of(space);
    if (capacity == 0) diagnostics_.fail(Rule::Protocol, "allocation in no memory");
    if (addr > capacity || bytes > capacity - addr) {
        diagnostics_.fail(Rule::Capacity, text("LocalMemAllocator hands out %u bytes at %s[0x%x], which has %u bytes",
                                               bytes, name_of_space(space), addr, capacity));
    }
    mark_freed(core, space, addr, bytes, false);
    if (core.allocations.size() < 4096) core.allocations.push_back({space, addr, bytes, 1, ASC_POS_VECCALC, -1, line});
}

void Executor::offset_out_of_bounds(asc_local tensor, uint64_t offset_bytes, int32_t line) {
    running(line);
    diagnostics_.fail(Rule::OutOfBounds,
                      text("a LocalTensor of %u bytes is indexed at byte %llu", tensor.bytes,
                           static_cast<unsigned long long>(offset_bytes)),
                      "keep the offset below the size of the tensor");
}

Queue &Executor::queue_at(Core &core, uint32_t id, const char *what) {
    if (id >= core.queues.size() || !core.queues[id].ready) {
        diagnostics_.fail(Rule::QueueInit, text("%s on queue %u, which has no buffers", what, id));
    }
    return core.queues[id];
}

QueueBuffer &Executor::buffer_in(Core &core, uint32_t id, const asc_local &tensor, const char *what) {
    Queue &queue = queue_at(core, id, what);
    const uint32_t first = queue.buffers[0].addr;
    const uint32_t slot = tensor.addr >= first ? (tensor.addr - first) / queue.bytes : UINT32_MAX;
    if (tensor.space != queue.space || slot >= queue.buffers.size()) {
        diagnostics_.fail(Rule::QueueForeign,
                          text("%s on %s of a tensor that is not its own (%s)", what, queue.name(id).c_str(),
                               core.describe(tensor.space, tensor.addr).c_str()));
    }
    return queue.buffers[slot];
}

void Executor::alloc(uint32_t id, uint32_t addr, int32_t line) {
    Core &core = running(line);
    Queue &queue = queue_at(core, id, "AllocTensor");
    if (queue.idle.empty()) {
        diagnostics_.fail(Rule::QueueFull,
                          text("AllocTensor on %s: all its buffers (%zu) are in use, the first since line %d",
                               queue.name(id).c_str(), queue.buffers.size(), queue.buffers[0].line));
    }
    const uint32_t slot = queue.idle.front();
    QueueBuffer &buffer = queue.buffers[slot];
    if (buffer.addr != addr) diagnostics_.fail(Rule::Protocol, "AllocTensor of another buffer than the device's");
    queue.idle.pop_front();
    buffer.state = BufferState::Allocated;
    buffer.line = line;
    mark_freed(core, queue.space, buffer.addr, queue.bytes, false);
    overhead(Call::QueueOp);
    if (buffer.freed) {
        core.clocks.join(queue.producer(), buffer.free);
        wait(queue.producer(), free_token(queue.number, slot));
    }
    if (options_.compute) core.memory(queue.space).forget(addr, addr + queue.bytes);
}

void Executor::enqueue(uint32_t id, asc_local tensor, int32_t line) {
    Core &core = running(line);
    const Queue &queue = queue_at(core, id, "EnQue");
    enqueue_between(core, id, tensor, queue.source, queue.destination);
}

void Executor::enqueue_as(uint32_t id, asc_local tensor, uint32_t source, uint32_t destination, int32_t line) {
    Core &core = running(line);
    if (source >= ASC_POSITIONS || destination >= ASC_POSITIONS)
        diagnostics_.fail(Rule::Protocol, "EnQue at no position");
    enqueue_between(core, id, tensor, source, destination);
}

void Executor::enqueue_between(Core &core, uint32_t id, const asc_local &tensor, uint32_t source,
                               uint32_t destination) {
    QueueBuffer &buffer = buffer_in(core, id, tensor, "EnQue");
    Queue &queue = core.queues[id];
    if (buffer.state != BufferState::Allocated && buffer.state != BufferState::Dequeued) {
        diagnostics_.fail(Rule::QueueState, text("EnQue on %s of a tensor that is %s since line %d",
                                                 queue.name(id).c_str(), name_of_state(buffer.state), buffer.line));
    }
    if (queue.enqueued.size() >=
        static_cast<size_t>(std::max(queue.depth, 1))) {  // a queue of depth 0 works in place, on one buffer
        diagnostics_.fail(Rule::QueueDepth, text("EnQue on %s, which already holds %zu tensors", queue.name(id).c_str(),
                                                 queue.enqueued.size()));
    }
    uint32_t &in_flight = core.in_flight[queue.producer()][queue.consumer()];
    in_flight += !buffer.counted;
    buffer.counted = true;
    if (in_flight > event_ids && queue.producer() != queue.consumer()) {
        diagnostics_.fail(Rule::Events,
                          text("EnQue on %s is the ninth tensor between %s and %s", queue.name(id).c_str(),
                               name_of_pipe(queue.producer()), name_of_pipe(queue.consumer())));
    }
    const uint32_t slot = static_cast<uint32_t>(&buffer - queue.buffers.data());
    buffer.state = BufferState::Enqueued;
    buffer.line = diagnostics_.line;
    buffer.source = source;
    buffer.destination = destination;
    buffer.ready = core.clocks.snapshot(producer_at(source));
    queue.enqueued.push_back(slot);
    overhead(Call::QueueOp);
    signal(producer_at(source), ready_token(queue.number, slot));
}

void Executor::dequeue(uint32_t id, uint32_t addr, int32_t line) {
    Core &core = running(line);
    const Queue &queue = queue_at(core, id, "DeQue");
    dequeue_between(core, id, addr, queue.source, queue.destination);
}

void Executor::dequeue_as(uint32_t id, uint32_t addr, uint32_t source, uint32_t destination, int32_t line) {
    Core &core = running(line);
    if (source >= ASC_POSITIONS || destination >= ASC_POSITIONS)
        diagnostics_.fail(Rule::Protocol, "DeQue at no position");
    dequeue_between(core, id, addr, source, destination);
}

void Executor::dequeue_between(Core &core, uint32_t id, uint32_t addr, uint32_t source, uint32_t destination) {
    Queue &queue = queue_at(core, id, "DeQue");
    if (queue.enqueued.empty())
        diagnostics_.fail(Rule::QueueEmpty, text("DeQue on %s, which is empty", queue.name(id).c_str()));
    const uint32_t slot = queue.enqueued.front();
    QueueBuffer &buffer = queue.buffers[slot];
    if (buffer.addr != addr) diagnostics_.fail(Rule::Protocol, "DeQue of another buffer than the device's");
    const uint32_t consumer = consumer_at(source, destination);
    if (producer_at(source) != producer_at(buffer.source) ||
        consumer != consumer_at(buffer.source, buffer.destination)) {
        diagnostics_.fail(Rule::QueueState,
                          text("DeQue from %s to %s on %s of a tensor that was enqueued from %s to %s in line %d",
                               name_of_position(source), name_of_position(destination), queue.name(id).c_str(),
                               name_of_position(buffer.source), name_of_position(buffer.destination), buffer.line),
                          "DeQue waits for another event than EnQue sets: name the same positions");
    }
    queue.enqueued.pop_front();
    buffer.state = BufferState::Dequeued;
    buffer.line = diagnostics_.line;
    core.clocks.join(consumer, buffer.ready);
    overhead(Call::QueueOp);
    wait(consumer, ready_token(queue.number, slot));
}

// Marks blocks of UB as freed until AllocTensor allocates them again.
void Executor::mark_freed(Core &core, uint32_t space, uint32_t begin, uint32_t bytes, bool freed) {
    if (space != ASC_UB) return;
    const uint32_t blocks = static_cast<uint32_t>(core.freed.size()), first = std::min(begin / 32, blocks);
    const uint32_t last =
        static_cast<uint32_t>(std::min<uint64_t>((static_cast<uint64_t>(begin) + bytes) / 32, blocks));
    std::fill(core.freed.begin() + first, core.freed.begin() + std::max(first, last), freed);
}

void Executor::free(uint32_t id, asc_local tensor, int32_t line) {
    Core &core = running(line);
    QueueBuffer &buffer = buffer_in(core, id, tensor, "FreeTensor");
    Queue &queue = core.queues[id];
    if (buffer.state == BufferState::Free || buffer.state == BufferState::Enqueued) {
        diagnostics_.fail(Rule::QueueState, text("FreeTensor on %s of a tensor that is %s since line %d",
                                                 queue.name(id).c_str(), name_of_state(buffer.state), buffer.line));
    }
    const uint32_t slot = static_cast<uint32_t>(&buffer - queue.buffers.data());
    buffer.state = BufferState::Free;
    buffer.line = line;
    buffer.freed = true;
    buffer.free = core.clocks.snapshot(queue.consumer());
    queue.idle.push_back(slot);
    mark_freed(core, queue.space, buffer.addr, queue.bytes, true);
    if (buffer.counted) --core.in_flight[queue.producer()][queue.consumer()];
    buffer.counted = false;
    overhead(Call::QueueOp);
    signal(queue.consumer(), free_token(queue.number, slot));
}

}  // namespace sim

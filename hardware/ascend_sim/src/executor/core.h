// The state of one core: its memories, the clocks of its pipes, its queues, flags and registers.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "../../include/abi.h"
#include "clocks.h"
#include "local_memory.h"
#include "rows.h"

namespace sim {

constexpr const char *name_of_pipe(uint32_t pipe) {
    constexpr const char *names[ASC_PIPES] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
    return pipe < ASC_PIPES ? names[pipe] : "?";
}

constexpr const char *name_of_position(uint32_t position) {
    constexpr const char *names[ASC_POSITIONS] = {"GM",  "A1",    "A2",     "B1",      "B2",  "C1",   "C2",       "CO1",
                                                  "CO2", "VECIN", "VECOUT", "VECCALC", "SPM", "TSCM", "C2PIPE2GM"};
    return position < ASC_POSITIONS ? names[position] : "?";
}

enum class BufferState : uint8_t { Free, Allocated, Enqueued, Dequeued };

// One buffer of a queue, with the clocks that travel with it.
struct QueueBuffer {
    uint32_t addr = 0;
    BufferState state = BufferState::Free;
    bool counted = false;                  // among the tensors in flight
    bool freed = false;                    // was used before, so `free` holds a clock
    int32_t line = 0;                      // line of the last state change
    uint32_t source = 0, destination = 0;  // the positions it was enqueued between
    Clock ready, free;
};

// The pipes that write and read at two positions.
uint32_t producer_at(uint32_t source);
uint32_t consumer_at(uint32_t source, uint32_t destination);

struct Queue {
    bool ready = false;
    uint32_t number = 0;  // differs from that of every other queue with buffers; below 64, as a TPipe has 64 buffers
    uint32_t source = 0, destination = 0;
    int32_t depth = 0;
    uint32_t bytes = 0, space = ASC_UB;
    std::vector<QueueBuffer> buffers;
    std::deque<uint32_t> idle, enqueued;  // indices into `buffers`

    uint32_t producer() const;
    uint32_t consumer() const;
    std::string name(uint32_t id) const;
};

// A range allocated by InitBuffer or LocalMemAllocator, for messages.
struct Allocation {
    uint32_t space, addr, bytes;  // bytes of one buffer
    uint32_t count;
    uint32_t position;
    int32_t queue;  // -1: a TBuf or a static allocation
    int32_t line;
    bool inside = false;  // lies in a TBufPool, whose bytes are already counted
};

struct Flag {
    bool set = false;
    int32_t line = 0;
    Clock clock;
};

// The global bytes that one copy of this core touched, and its number on its pipe.
struct GlobalTouch {
    Rows rows;
    uint32_t pipe, number;
};

enum : int { event_ids = 8 };

// A number for atomic writes that commute: those of one operation and type.
constexpr uint32_t kind_of_atomic(uint32_t operation, uint32_t dtype) { return operation | dtype << 8; }

class Core {
public:
    explicit Core(uint8_t poison);

    // Resets the core for another block.
    void reset(uint32_t instance);
    void restart_buffers();
    // "VECIN queue 0 buffer 1", or the plain address.
    std::string describe(uint32_t space, uint32_t addr) const;
    const QueueBuffer *queue_buffer(uint32_t space, uint32_t addr) const;
    LocalMemory &memory(uint32_t space) { return memories_[space]; }

    uint32_t id = 0;
    bool waiting = false;   // blocked in SyncAll
    bool has_pipe = false;  // a TPipe was constructed
    PipeClocks clocks;
    uint32_t next_addr[ASC_SPACES] = {};  // first unallocated address of each memory
    uint32_t high_addr = 0;               // first UB address that was never allocated
    std::vector<Allocation> allocations;
    std::vector<Queue> queues;
    uint32_t in_flight[ASC_PIPES][ASC_PIPES] = {};  // allocated tensors by producer and consumer
    std::vector<uint8_t> freed;                     // by block of UB: belongs to a freed tensor
    Flag flags[ASC_PIPES][ASC_PIPES][event_ids];

    bool counter = false;               // SetMaskCount
    uint64_t mask[2] = {~0ull, ~0ull};  // low, high
    uint32_t atomic = 0, atomic_dtype = 0;
    uint32_t atomic_kind() const { return atomic ? kind_of_atomic(atomic, atomic_dtype) : 0; }
    bool pad_set = false;
    uint64_t pad_bits = 0;
    uint64_t bypassing = 0;  // tensors whose copies bypass L2, by bit
    struct {
        uint64_t scale = 0;
        uint32_t nd_num = 1, src_nd_stride = 0, dst_nd_stride = 0;
        asc_local scales = {0, 0, ASC_FB};
    } fix;                                          // registers of Fixpipe (copies out of L0C)
    uint64_t gathered = 0;                          // elements that the last GatherMask kept
    uint64_t merged = 0;                            // pairs that the last MrgSort took from each list, 16 bits each
    std::deque<GlobalTouch> copied_out, copied_in;  // recent copies, in writable tensors
    std::unordered_set<uint64_t> dirty_lines;       // of the scalar unit's data cache

private:
    std::vector<LocalMemory> memories_;
};

}  // namespace sim

// The timing state of one core. Used by timeline*.cpp only.
#pragma once
#include <algorithm>
#include <vector>

#include "timeline.h"

namespace sim {

struct Timeline::Pipe {
    Ticks free = 0, done = 0;   // accepts the next instruction at `free`; all results are ready at `done`
    Ticks gate = 0;             // waits block the next instruction until this time
    uint8_t gate_from = ASC_S;  // the pipe that is waited for
    uint32_t next = 0;          // queue slots: when the instruction in the slot started
    std::vector<Ticks> starts;

    // When everything issued so far is done; an idle pipe signals at once.
    Ticks reached(Ticks clock) const { return std::max({done, gate, clock}); }
};

struct Timeline::Core {
    explicit Core(const Chip &chip)
        : atomic(ticks(chip.memory.atomic)), cache(static_cast<uint64_t>(chip.scalar.cache_bytes)),
          depth_(static_cast<size_t>(chip.scalar.queue_depth)),
          cache_bytes_(static_cast<uint64_t>(chip.scalar.cache_bytes)) {}

    void begin(uint32_t number, uint32_t physical, Ticks time) {
        block = number;
        place = physical;
        began = since = clock = time;
        arrived = loaded = copied = from_l2 = shared_hbm = 0;
        traffic = Traffic{};
        page = ~0ull;
        std::fill(std::begin(work), std::end(work), 0);
        waiting = false;
        met = 0;
        for (Pipe &each : pipe) {
            each = Pipe{};
            each.free = each.done = time;
            each.starts.assign(depth_, 0);
        }
        tokens.clear();
        totals = Totals{};
        way = Way{};
        filler = Filler{number, 1, 0, 0, 0, time};
        cache = DataCache(cache_bytes_);
    }
    Ticks drained() const {
        Ticks time = clock;
        for (const Pipe &each : pipe) time = std::max(time, each.done);
        return time;
    }

    uint32_t block = 0, place = 0;
    Ticks began = 0, clock = 0, arrived = 0;
    Ticks since = 0, copied = 0;  // when the phase began; how long MTE2 was busy before it
    bool waiting = false;         // blocked in SyncAll
    size_t met = 0;               // number of SyncAll passed
    Pipe pipe[ASC_PIPES];
    std::vector<Moment> tokens;
    Totals totals;
    Rate hbm, port, share, l2, write, fix;  // of this core
    Rate cube_hbm, cube_l2;                 // of the cube core that serves it
    Ticks shared = 0, contended = 0, atomic = CYCLE;
    Ticks loaded = 0;       // when what the scalar unit read last has arrived
    uint64_t page = ~0ull;  // the page of global memory that the last copy in ended in
    Traffic traffic;        // in this phase, with HBM
    Ticks from_l2 = 0;      // first reads of what others fetched in this phase, and products
    Ticks shared_hbm = 0;   // what its bytes from and to HBM in this phase take at an equal share, cube core included
    Ticks work[ASC_PIPES] = {};  // what each pipe needs at least, whatever the other cores do
    Way way;
    Way *cube = nullptr;
    Filler filler;
    DataCache cache;

private:
    size_t depth_;
    uint64_t cache_bytes_;
};

}  // namespace sim

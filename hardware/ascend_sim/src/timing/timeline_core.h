// What the timing pass knows while it times a phase: it is copied before the first pass and put back for the second.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "caches.h"
#include "chip.h"

namespace sim::timing {

// The cause of a pipe's wait: one of the pipes, or the other cores.
enum Cause : uint8_t { CAUSE_SYNC = ASC_PIPES, CAUSES };

struct Totals {
    Ticks busy[ASC_PIPES] = {};
    Ticks wait[ASC_PIPES][CAUSES] = {};
    uint64_t instructions[ASC_PIPES] = {};
    uint64_t hbm_read = 0, hbm_write = 0, l2_read = 0, l2_write = 0, ub = 0;
    uint64_t bursts_in = 0, bursts_out = 0, misaligned = 0, scalar_accesses = 0, cache_misses = 0, repeats = 0;
    Ticks conflicts = 0, contention = 0;
};

struct LineTime { Ticks busy[ASC_PIPES] = {}; };

// A moment by three clocks of a core. `time`: at an equal share of HBM; `least`: with what the other cores leave of it
// as they end, or as if all that it fetches were in L2 while that is not known; `beside`: as `time`, but as if all that
// its copies transfer were in L2.
struct Times {
    Ticks time = 0, least = 0, beside = 0;
    Times operator+(Ticks more) const { return {time + more, least + more, beside + more}; }
    Times operator-(Times other) const { return {time - other.time, least - other.least, beside - other.beside}; }
    void operator+=(Ticks more) { time += more, least += more, beside += more; }
};

inline Times latest(Times a, Times b) {
    return {std::max(a.time, b.time), std::max(a.least, b.least), std::max(a.beside, b.beside)};
}

struct Moment {
    Times at = {};
    uint8_t pipe = ASC_S;
};

// Transfers that the other cores slow down: their time, and the sum of its products with the time in the phase at which
// each transfer ends, in square cycles.
struct Traffic {
    Ticks time = 0, moment = 0;
    void add(const Traffic &other) { time += other.time, moment += other.moment; }
    // When it ends, if it is spread evenly: twice its mean time.
    Ticks until() const { return time < CYCLE ? 0 : 2 * CYCLE * (moment / (time / CYCLE)); }
};

// What a core did in a phase, which ends at SyncAll or with the launch. `took`: by its clocks; `work`: what one of its
// pipes needs at least, whatever the other cores do; `products`: its high-level Matmuls; `hbm`, `l2`: its bytes at an
// equal share of each; `end`: when it ends as others leave it their share; `cube_end`: the same for its products alone;
// `traffic`: its copies; `fetches`: those of its products.
struct Span {
    Times took = {};
    Ticks work = 0, products = 0, hbm = 0, l2 = 0, end = 0, cube_end = 0;
    uint32_t cube = 0;
    Traffic traffic = {}, fetches = {};
    void add(const Span &other) {
        work += other.work, products += other.products, hbm += other.hbm, l2 += other.l2;
        cube = other.cube;
        traffic.add(other.traffic), fetches.add(other.fetches);
    }
};

struct Pipe {
    Times free, done;           // accepts the next instruction at `free`; all results are ready at `done`
    Times gate;                 // waits block the next instruction until this time
    uint8_t gate_from = ASC_S;  // the pipe that is waited for
    uint32_t next = 0;          // queue slots: when the instruction in the slot started
    std::vector<Times> starts;

    // When everything issued so far is done; an idle pipe signals at once.
    Times reached(Times clock) const { return latest(latest(done, gate), clock); }
};

struct Core {
    Times drained() const {
        Times times = clock;
        for (const Pipe &each : pipe) times = latest(times, each.done);
        return times;
    }

    uint32_t block = 0, place = 0, cube = 0;
    Ticks began = 0;
    Times since, clock;    // since: the phase
    bool waiting = false;  // blocked in SyncAll
    Times arrived;         // there
    Pipe pipe[ASC_PIPES];
    std::vector<Moment> tokens;
    Times loaded;                // when what the scalar unit read last has arrived
    uint64_t page = ~0ull;       // the page of global memory that the last copy in ended in
    Ticks work[ASC_PIPES] = {};  // of this phase
    Span span;                   // of this phase
    Way way;
    Filler filler;
};

// A physical core: when it has finished its blocks, what they did in the last phase, and what they have filled of L2.
struct Place {
    Times free = {};
    Span span = {};
    uint64_t filled = 0, dirty = 0;
};

// The rates of a core of the launch, and of the cube core that serves it.
struct Rates {
    Rate hbm, port, share, l2, l2_share, write, fix, cube_share, cube_l2;
    Ticks shared = 0, contended = 0;
};

// A cube core that serves vector cores, by all of their clocks.
struct Cube {
    Way way, least, beside;
    Times begins(Times now, Ticks work) const {
        return {way.begins(now.time, work), least.begins(now.least, work), beside.begins(now.beside, work)};
    }
    Times book(Times now, Times work) {
        return {way.book(now.time, work.time), least.book(now.least, work.least), beside.book(now.beside, work.beside)};
    }
};

// When units of a phase end, in order, and which part of what HBM costs beyond L2, or beyond the port of writes, is left
// when so many have ended.
struct Left {
    static constexpr Ticks ALL = 1 << 20;  // so that its product with seconds does not overflow
    std::vector<Ticks> ends, parts;
    // What is left of the cost of bytes that come from this moment on and take `beside` without HBM. Where units end
    // meanwhile, the rest of the bytes comes faster.
    Ticks of(Ticks cost, Ticks beside, Ticks moment) const {
        if (ends.empty() || cost <= 0) return 0;
        auto ended = std::upper_bound(ends.begin(), ends.end() - 1, moment) - ends.begin();
        Ticks rest = ALL, passed = 0;  // the part of the bytes that has not come, and the time until then
        for (;; ++ended) {
            const Ticks whole = beside + cost * parts[ended] / CYCLE, needed = whole * rest / ALL;
            const bool last = static_cast<size_t>(ended) + 1 == ends.size();
            if (last || moment + passed + needed <= ends[ended]) return std::max<Ticks>(0, passed + needed - beside);
            const Ticks interval = std::max<Ticks>(0, ends[ended] - moment - passed);
            rest -= interval * ALL / whole;
            passed += interval;
        }
    }
};

struct Launch {
    uint32_t blocks = 0, cores = 0, kind = ASC_AIV;
    Rates rates;
    Ticks window = 0;    // of time, in which cores read a sector together
    bool flags = false;  // cores have waited for flags of others in this phase
    Ticks began = 0, core_time = 0;
    Ticks since = 0, saved = 0;  // when the phase began; what earlier phases took less than their cores' clocks
    Ticks met = 0;               // when the last core came to SyncAll
    std::vector<Span> arrived;   // what the cores did that came there
    Left left, writes_left, fixes_left, cubes_left;  // in this phase, once it is known
    std::vector<Place> places;
    std::vector<Cube> cubes;  // in a mixed launch two vector cores share one
};

struct State {
    Launch launch_;
    std::unordered_map<uint32_t, Core> cores_;  // by block
    std::unordered_map<uint32_t, Moment> shared_tokens_;
    Totals totals_;
    std::vector<LineTime> lines_;
};

}  // namespace sim::timing

// The timing pass: turns instruction records into time with a chip profile.
//
// Each core has seven pipes that execute their instructions in order. The scalar unit S issues every instruction; an
// instruction starts when its pipe is free and the signals it waits for have been given. Records arrive core after
// core, so cores affect each other only through what a launch fixes beforehand (how many cores share HBM), SyncAll, and
// L2.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "caches.h"
#include "chip.h"
#include "costs.h"
#include "trace.h"

namespace sim {

// The cause of a pipe's wait: one of the pipes, or the other cores.
enum Cause : uint8_t { CAUSE_SYNC = ASC_PIPES, CAUSES };

struct Totals {
    Ticks busy[ASC_PIPES] = {};
    Ticks wait[ASC_PIPES][CAUSES] = {};
    uint64_t instructions[ASC_PIPES] = {};
    uint64_t hbm_read = 0, hbm_write = 0, l2_read = 0, l2_write = 0, ub = 0;
    uint64_t bursts_in = 0, bursts_out = 0, misaligned = 0, scalar_accesses = 0, cache_misses = 0, repeats = 0;
    Ticks conflicts = 0, contention = 0, core_time = 0;
    void add(const Totals &other);
};

class Timeline : public Sink {
public:
    // `l2` is as the launches before left it.
    Timeline(const Chip &chip, L2 &l2);
    ~Timeline() override;
    void take(const Instr &instr) override;
    void take_loop(const ScalarLoop &loop) override;
    double latency_us() const;
    std::string report_json() const;
    // Writes a Chrome trace of the pipes from now on; `file` stays open and belongs to the caller until finish_trace.
    void trace_to(FILE *file);
    void finish_trace();

private:
    struct Pipe;
    struct Core;
    struct Moment {
        Ticks time = 0;
        uint8_t pipe = ASC_S;
    };
    // Transfers that the other cores slow down: their time, and the sum of its products with the time in the phase at
    // which each transfer ends, in square cycles.
    struct Traffic {
        Ticks time = 0, moment = 0;
        void add(const Traffic &other) { time += other.time, moment += other.moment; }
        // When it ends, if it is spread evenly: twice its mean time.
        Ticks until() const { return time < CYCLE ? 0 : 2 * CYCLE * (moment / (time / CYCLE)); }
    };
    // A physical core: when it has finished its blocks, how much of that time depends on the other cores, and what its
    // blocks have filled of L2.
    struct Place {
        Ticks free = 0, for_others = 0, from_l2 = 0, work = 0, shared = 0;
        Traffic hbm = {};
        uint64_t filled = 0, dirty = 0;
    };
    // A finished block: where it ran, and the time it loses for each byte that comes from HBM instead of L2.
    struct Ended {
        uint32_t place = 0;
        Rate loss;
    };
    // What a core did in a phase, which ends at a SyncAll or with the launch. `for_others`: what it lost by fetching bytes
    // to L2 that other cores read there; `from_l2`: its reads of theirs; `shared`: its bytes at its share of HBM.
    struct Span {
        Ticks time, work, from_l2, for_others, shared;
        Traffic hbm;
    };
    struct Arrival {
        uint32_t block;
        Span span;
        Rate loss;
    };
    struct Meeting {
        Ticks last = 0;
        std::vector<Arrival> cores;
    };
    struct Launch {
        uint32_t blocks = 0, cores = 0, kind = ASC_AIV;
        bool flags = false;  // cores have waited for flags of others in this phase
        Ticks began = 0, core_time = 0;
        Ticks since = 0,
              saved = 0;  // when the phase began; what the phases before it took less than their cores' clocks
        std::vector<Meeting> meetings;
        std::vector<Place> places;
        std::vector<Ended> ended;  // by block
        std::vector<Way> cubes;    // in a mixed launch two vector cores share one
    };
    struct ScalarTime;
    struct LineTime { Ticks busy[ASC_PIPES] = {}; };

    void begin_launch(const Instr &instr);
    void end_launch();
    void begin_core(uint32_t block);
    void end_core(Core &core);
    Core &core(uint32_t block);
    void share_memory(Core &core);
    Ticks settle(std::vector<Span> spans) const;
    void transfer(Core &core, Ticks time, Ticks end) const;
    static Rate loss(const Core &core, Ticks span);
    void end_phase(const Meeting &meeting);
    void release_sync(Core &core);

    Ticks issue(Core &core, uint8_t pipe);
    void run(Core &core, const Instr &instr, Ticks start, Ticks free, Ticks done);
    void plain(Core &core, const Instr &instr, Ticks time);
    void scalar(Core &core, int32_t line, Ticks time);
    void spend(int32_t line, uint8_t pipe, Ticks time);
    void vector(Core &core, const Instr &instr);
    void copy(Core &core, const Instr &instr, bool write);
    Touch touch(Core &core, const Instr &instr, bool write);
    Ticks share_of_hbm(Core &core, uint64_t read, uint64_t written) const;
    Ticks hbm_read(Core &core, const Instr &instr, uint64_t bytes);
    void local_scalar(Core &core, int32_t line, bool write);
    void use_loaded(Core &core);
    void global_scalar(Core &core, int32_t line, uint64_t address);
    void period(Core &core, const ScalarLoop &loop, uint32_t first, uint32_t count);
    void again(Core &core, const ScalarLoop &loop, const ScalarTime &before, uint32_t times);
    void signal(Core &core, const Instr &instr);
    void wait(Core &core, const Instr &instr);
    void hold(Core &core, uint8_t pipe, Moment until);
    void barrier(Core &core, const Instr &instr);
    void sync_all(Core &core);
    void matmul(Core &core, const Instr &instr);
    void touch_rows(Core &core, const MatrixRows &rows, bool write, Touch &touch);
    Moment &token(Core &core, uint32_t token);
    std::string lines_json() const;

    const Chip chip_;
    const Costs costs_;
    L2 &l2_;
    Launch launch_;
    Ticks now_ = 0, overhead_ = 0, longest_ = 0, mean_ = 0;
    uint32_t launches_ = 0, waves_ = 0, most_cores_ = 0, available_ = 0;
    uint64_t blocks_ = 0, records_ = 0;
    Totals totals_;
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<std::unique_ptr<Core>> spare_;
    std::unordered_map<uint32_t, Moment> shared_tokens_;
    std::vector<LineTime> lines_;
    std::unique_ptr<Trace> trace_;
    Ticks issue_, local_, load_use_, hit_, miss_, copy_issue_, copy_burst_, copy_page_, copy_turn_, latency_,
        write_latency_, fix_latency_, hbm_write_, sync_, event_;
};

}  // namespace sim

// The timing pass: turns instruction records into time with a chip profile.
//
// Each core has seven pipes that execute their instructions in order. The scalar unit S issues every instruction; an
// instruction starts when its pipe is free and the signals it waits for have been given. Records arrive core after core
// and are kept until all cores have met or ended, then they are timed. Cores affect each other through what a launch
// fixes beforehand (how many cores share HBM), SyncAll, flags, and the bytes that they fetch together: if there are such
// bytes, the phase is timed once more when the first time has shown who reads what when. So is one whose cores end at
// different times, once these are known. A phase with more records than are kept, or after thousands of others, is timed
// once: nobody shares a fetch, and all cores are in each other's way.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chip.h"
#include "costs.h"
#include "timeline_core.h"
#include "trace.h"

namespace sim {

class Timeline : public Sink, private timing::State {
public:
    // `l2` is as the launches before left it. `at_work` is called now and then while a long phase is timed.
    Timeline(const Chip &chip, L2 &l2, std::function<void()> at_work = [] {});
    void take(const Instr &instr) override;
    void take_loop(const ScalarLoop &loop) override;
    // Ends the launch that is open: a kernel was stopped, and what it did until then has its time.
    void stop() {
        if (open_) end_launch();
    }
    double latency_us() const { return chip_.microseconds(now_); }
    std::string report_json() const;
    // Writes a Chrome trace of the pipes from now on; `file` stays open and belongs to the caller until finish_trace.
    void trace_to(FILE *file);
    void finish_trace();

private:
    using Core = timing::Core;
    using Moment = timing::Moment;
    using Span = timing::Span;
    using Times = timing::Times;
    // A record as it is kept: what does not depend on other pipes and cores is computed.
    struct Step {
        Kind kind;  // Overhead: any scalar code
        uint8_t pipe;
        uint8_t flags;  // see below
        int32_t ahead;  // scalar code: how long after it what it has read arrives; negative: it has read nothing
        uint32_t core;
        int32_t line;
        int64_t value;  // a time, a token, or the number of a move or a product
    };
    static constexpr uint8_t BYPASS = 1, ATOMIC = 2, LATEST = 4,
                             USES = 8;  // USES: begins with the use of what was read
    struct Move {
        uint64_t gm, gap;
        uint32_t bursts, bytes;
    };
    struct Product {
        Costs::Matmul cost;
        MatrixRows matrix[4];
    };
    // The scalar unit of a core while its records are taken.
    struct Unit {
        Unit(uint64_t cache_bytes, uint32_t begun) : cache(cache_bytes), phase(begun) {}
        DataCache cache;
        Ticks clock = 0;     // of scalar code alone
        int32_t ahead = -1;  // how long until what was read last arrives; negative: that depends on waits
        uint32_t phase;
        bool waiting = false;  // in SyncAll
    };
    struct Period;

    // Taking records: timeline_take.cpp.
    Unit &unit(uint32_t block);
    void forget(uint32_t block);
    void resume(Unit &unit);
    void keep(Unit &unit, const Instr &instr, int64_t value, uint8_t flags = 0);
    void keep_scalar(Unit &unit, uint32_t core, Ticks time, bool uses, bool reads);
    void scalar(Unit &unit, uint32_t core, int32_t line, Ticks time, bool uses = false, bool reads = false);
    void local_scalar(Unit &unit, uint32_t core, int32_t line, bool write);
    void global_scalar(Unit &unit, uint32_t core, int32_t line, uint64_t address, bool write);
    void clean(Unit &unit, const Instr &instr);
    void period(Unit &unit, const ScalarLoop &loop, uint32_t first, uint32_t count);
    void again(Unit &unit, const ScalarLoop &loop, const Period &before, uint32_t times);
    void vector(Unit &unit, const Instr &instr);
    void product(Unit &unit, const Instr &instr);

    // Launches: timeline_launch.cpp.
    void begin_launch(const Instr &instr);
    void end_launch();
    void share_memory();
    void time_phase();
    void time_at_once();
    void play_steps(bool last);
    void forget_steps();
    void begin_phase();
    void end_phase();
    std::vector<Span> spans() const;
    std::vector<Span> ended(std::vector<Span> spans) const;
    Ticks settle(const std::vector<Span> &spans) const;
    std::vector<int64_t> rates_left(size_t cores) const;
    bool shortened() const;
    bool ends_later() const;
    timing::Left left(std::vector<Ticks> ends, Rate least) const;
    void know_ends(const std::vector<Span> &ended);
    void begin_core(uint32_t block);
    void end_core(Core &core);
    Core &core(uint32_t block);
    void sync_all(Core &core);
    void release_sync(Core &core);
    void end_span(Core &core, Times end) const;

    // Timing: timeline.cpp.
    void play(const Step &step);
    Times issue(Core &core, uint8_t pipe);
    void run(Core &core, const Step &step, Ticks start, Times free, Times done);
    void plain(Core &core, const Step &step);
    void scalar(Core &core, const Step &step);
    void spend(int32_t line, uint8_t pipe, Ticks time);
    void use_loaded(Core &core);
    void copy(Core &core, const Step &step, bool write);
    Touch touch(Core &core, const Step &step, bool write);
    Ticks read(Core &core, const Move &move, const Touch &found, uint64_t extra);
    Ticks share_of_hbm(Core &core, uint64_t read, uint64_t written) const;
    void transfer(timing::Traffic &traffic, Ticks time, Ticks end) const;
    void signal(Core &core, const Step &step);
    void wait(Core &core, const Step &step);
    void hold(Core &core, uint8_t pipe, Moment until);
    void barrier(Core &core, const Step &step);
    void matmul(Core &core, const Step &step);
    void touch_rows(Core &core, const MatrixRows &rows, Use use, Touch &touch);
    Moment &token(Core &core, uint32_t token);
    std::string lines_json() const;

    static constexpr uint64_t MOST_STEPS = 1u << 22, MOST_COPIED = 1ull << 32;
    static constexpr int MOST_KNOWN = 3;          // passes in which a core knows when the others end
    static constexpr uint64_t COPIED_NODE = 512;  // bytes that take as long to copy as a node of a map

    const Chip chip_;
    const Costs costs_;
    L2 &l2_;
    std::function<void()> at_work_;
    bool open_ = false;                         // in a launch
    uint32_t phase_ = 0;                        // of the launch, whose records are being taken
    std::unordered_map<uint32_t, Unit> units_;  // by block
    Unit *taking_ = nullptr;                    // that of the block `taken_`
    uint32_t taken_ = 0;
    Core *timed_ = nullptr;  // the core of the last step
    bool at_once_ = false;   // the phase is timed in one pass
    uint64_t copied_ = 0;    // bytes, for second passes
    std::vector<Step> steps_;
    std::vector<Move> moves_;
    std::vector<Product> products_;
    std::vector<const char *> names_;  // of the steps, if there is a trace
    Ticks now_ = 0, overhead_ = 0, longest_ = 0, mean_ = 0;
    uint32_t launches_ = 0, waves_ = 0, most_cores_ = 0, available_ = 0;
    uint64_t blocks_ = 0, records_ = 0;
    std::unique_ptr<Trace> trace_;
    bool tracing_ = false;  // in the last pass
    Ticks issue_, local_, load_use_, hit_, miss_, copy_issue_, copy_burst_, copy_page_, copy_turn_, latency_,
        write_latency_, fix_latency_, hbm_write_, sync_, event_, atomic_;
};

}  // namespace sim

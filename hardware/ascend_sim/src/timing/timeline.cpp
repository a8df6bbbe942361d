#include "timeline.h"

#include <algorithm>

#include "timeline_core.h"

namespace sim {

namespace {

constexpr uint32_t EVENT_TOKEN = 0xc0000000u;   // of IBSet
constexpr uint32_t SHARED_TOKEN = 0x80000000u;  // tokens from here on are shared by all cores of a launch
constexpr uint64_t PAGE = 2u << 20;             // of global memory
constexpr uint32_t MOST_TOKENS = 1u << 16, MOST_LINES = 1u << 16;

}  // namespace

void Totals::add(const Totals &other) {
    for (int pipe = 0; pipe < ASC_PIPES; ++pipe) {
        busy[pipe] += other.busy[pipe];
        instructions[pipe] += other.instructions[pipe];
        for (int cause = 0; cause < CAUSES; ++cause) wait[pipe][cause] += other.wait[pipe][cause];
    }
    hbm_read += other.hbm_read;
    hbm_write += other.hbm_write;
    l2_read += other.l2_read;
    l2_write += other.l2_write;
    ub += other.ub;
    bursts_in += other.bursts_in;
    bursts_out += other.bursts_out;
    misaligned += other.misaligned;
    scalar_accesses += other.scalar_accesses;
    cache_misses += other.cache_misses;
    repeats += other.repeats;
    conflicts += other.conflicts;
    contention += other.contention;
    core_time += other.core_time;
}

Timeline::Timeline(const Chip &chip, L2 &l2)
    : chip_(chip), costs_(chip_), l2_(l2), issue_(ticks(chip.scalar.issue)), local_(ticks(chip.scalar.local)),
      load_use_(ticks(chip.scalar.load_use)), hit_(ticks(chip.scalar.global_hit)),
      miss_(ticks(chip.scalar.global_miss)), copy_issue_(ticks(chip.copy.issue)), copy_burst_(ticks(chip.copy.burst)),
      copy_page_(ticks(chip.copy.page)), copy_turn_(ticks(chip.copy.turn)), latency_(ticks(chip.copy.latency)),
      write_latency_(ticks(chip.copy.write_latency)), fix_latency_(ticks(chip.cube.fix_latency)),
      hbm_write_(ticks(chip.memory.hbm_write)), sync_(ticks(chip.launch.sync_cycles)),
      event_(ticks(chip.launch.event_cycles)) {}

Timeline::~Timeline() = default;

double Timeline::latency_us() const { return chip_.microseconds(now_); }

void Timeline::trace_to(FILE *file) { trace_ = std::make_unique<Trace>(file, chip_); }

void Timeline::finish_trace() {
    if (trace_) trace_->finish();
    trace_.reset();
}

void Timeline::take(const Instr &instr) {
    ++records_;
    switch (instr.kind) {
        case Kind::LaunchBegin: return begin_launch(instr);
        case Kind::LaunchEnd: return end_launch();
        case Kind::CoreBegin: return begin_core(instr.core);
        default: break;
    }
    Core &at = core(instr.core);
    if (at.waiting) release_sync(at);
    switch (instr.kind) {
        case Kind::CoreEnd: return end_core(at);
        case Kind::Vector: return vector(at, instr);
        case Kind::CopyIn: return copy(at, instr, false);
        case Kind::CopyOut: return copy(at, instr, true);
        case Kind::PlainCode: return scalar(at, instr.line, CYCLE * instr.a);
        case Kind::ScalarLocal: return local_scalar(at, instr.line, instr.b != 0);
        case Kind::ScalarGlobal: return global_scalar(at, instr.line, instr.gm);
        case Kind::Overhead: return scalar(at, instr.line, costs_.overhead(instr.op));
        case Kind::Signal: return signal(at, instr);
        case Kind::Wait: return wait(at, instr);
        case Kind::Barrier: return barrier(at, instr);
        case Kind::SyncAll: return sync_all(at);
        case Kind::Cube: return plain(at, instr, costs_.cube(instr));
        case Kind::Load: return plain(at, instr, costs_.load(instr));
        case Kind::Matmul: return matmul(at, instr);
        default: return;
    }
}

// ---- pipes -------------------------------------------------------------------------------------------------------

// S spends its issue time. If the pipe's queue is full, S waits for a slot.
Ticks Timeline::issue(Core &at, uint8_t number) {
    Pipe &pipe = at.pipe[number];
    use_loaded(at);
    at.clock += issue_;
    at.totals.busy[ASC_S] += issue_;
    if (number == ASC_S) return at.clock;
    Ticks &slot = pipe.starts[pipe.next];
    if (slot > at.clock) {
        at.totals.wait[ASC_S][number] += slot - at.clock;
        at.clock = slot;
    }
    const Ticks start = std::max({pipe.free, pipe.gate, at.clock});
    if (start > pipe.free) {
        const uint8_t cause = pipe.gate >= at.clock ? pipe.gate_from : static_cast<uint8_t>(ASC_S);
        at.totals.wait[number][cause] += start - pipe.free;
    }
    slot = start;
    pipe.next = pipe.next + 1 == pipe.starts.size() ? 0 : pipe.next + 1;
    return start;
}

// The pipe accepts the next instruction at `free`; this instruction's results are ready at `done`.
void Timeline::run(Core &at, const Instr &instr, Ticks start, Ticks free, Ticks done) {
    Pipe &pipe = at.pipe[instr.pipe];
    const Ticks busy = done - std::max(start, std::min(pipe.done, done));
    at.totals.busy[instr.pipe] += busy;
    ++at.totals.instructions[instr.pipe];
    pipe.free = free;
    pipe.done = std::max(pipe.done, done);
    spend(instr.line, instr.pipe, busy);
    if (trace_) trace_->add(at.block, at.place, instr.pipe, instr, start, done);
}

void Timeline::plain(Core &at, const Instr &instr, Ticks time) {
    const Ticks start = issue(at, instr.pipe);
    at.work[instr.pipe] += time;
    run(at, instr, start, start + time, start + time);
}

void Timeline::spend(int32_t line, uint8_t pipe, Ticks time) {
    if (line <= 0 || static_cast<uint32_t>(line) >= MOST_LINES) return;
    if (static_cast<size_t>(line) >= lines_.size()) lines_.resize(line + 1);
    lines_[line].busy[pipe] += time;
}

void Timeline::scalar(Core &at, int32_t line, Ticks time) {
    at.clock += time;
    at.work[ASC_S] += time;
    at.totals.busy[ASC_S] += time;
    ++at.totals.instructions[ASC_S];
    spend(line, ASC_S, time);
}

// Reads follow each other at the pace of issue; a write waits until what was read has arrived.
void Timeline::local_scalar(Core &at, int32_t line, bool write) {
    ++at.totals.scalar_accesses;
    if (write) use_loaded(at);
    scalar(at, line, local_);
    if (!write) at.loaded = at.clock + load_use_;
}

void Timeline::use_loaded(Core &at) {
    if (at.loaded <= at.clock) return;
    at.work[ASC_S] += at.loaded - at.clock;
    at.totals.busy[ASC_S] += at.loaded - at.clock;
    at.clock = at.loaded;
}

void Timeline::global_scalar(Core &at, int32_t line, uint64_t address) {
    const bool hit = at.cache.hit(address);
    ++at.totals.scalar_accesses;
    at.totals.cache_misses += !hit;
    if (!hit) at.totals.hbm_read += 64;
    scalar(at, line, hit ? hit_ : miss_);
}

void Timeline::vector(Core &at, const Instr &instr) {
    const Costs::Vector cost = costs_.vector(instr);
    at.totals.conflicts += cost.conflict;
    at.totals.repeats += instr.repeats;
    at.totals.ub += 256ull * instr.repeats * std::max<uint8_t>(1, instr.operands);
    plain(at, instr, cost.time);
}

// ---- copies ------------------------------------------------------------------------------------------------------

Touch Timeline::touch(Core &at, const Instr &instr, bool write) {
    Touch touch;
    uint64_t address = instr.gm;
    for (uint32_t i = 0; i < instr.bursts; ++i, address += instr.burst_bytes + instr.gm_gap) {
        l2_.burst(at.filler, address, instr.burst_bytes, write, instr.bypass != 0, touch);
        touch.pages += i > 0 && address / PAGE != (address - instr.burst_bytes - instr.gm_gap) / PAGE;
    }
    if (write && instr.bypass) touch.written_back += touch.hit + touch.miss;  // written directly to HBM
    at.totals.misaligned += touch.extra;
    (write ? at.totals.bursts_out : at.totals.bursts_in) += instr.bursts;
    at.totals.hbm_write += touch.written_back;
    if (write) {
        at.totals.l2_write += touch.hit + touch.miss;
    } else {
        at.totals.hbm_read += touch.miss;
        at.totals.l2_read += touch.hit;
    }
    return touch;
}

// Bytes come at the rate of the core's port or at its share of HBM, whichever is slower. A copy that begins in another
// page than the one before it ended in starts later at the port; the requests of other cores hide that.
Ticks Timeline::hbm_read(Core &at, const Instr &instr, uint64_t bytes) {
    if (bytes == 0) return 0;
    const bool turned = instr.gm / PAGE != at.page;
    at.page = (instr.gm + (instr.bursts - 1) * (instr.burst_bytes + instr.gm_gap)) / PAGE;
    return std::max((turned ? copy_turn_ : 0) + at.port.of(bytes), at.share.of(bytes));
}

// What bytes take at an equal share of HBM.
Ticks Timeline::share_of_hbm(Core &at, uint64_t read, uint64_t written) const {
    const Ticks time = at.share.of(read) + at.share.of(written) * hbm_write_ / CYCLE;
    at.shared_hbm += time;
    return time;
}

// The port transfers the bytes at its own rate; bytes from or to HBM also use this core's share of the HBM bandwidth.
void Timeline::copy(Core &at, const Instr &instr, bool write) {
    const Ticks start = at.filler.now = issue(at, instr.pipe);
    const Touch found = touch(at, instr, write);
    const Ticks contention = at.shared * found.shared + at.contended * found.contended;
    Ticks time = copy_issue_ + copy_burst_ * instr.bursts + copy_page_ * found.pages + contention;
    Ticks shared = 0;  // what it would not cost if other cores had brought the bytes to L2
    const uint64_t extra = static_cast<uint64_t>(found.extra) * L2::SECTOR;
    if (write) {
        const Ticks out = (instr.pipe == ASC_FIX ? at.fix : at.write).of(found.hit + found.miss + extra);
        time += instr.atomic ? out * at.atomic / CYCLE : out;
    } else {
        at.from_l2 += at.l2.of(found.taken);
        time += at.l2.of(found.hit) + hbm_read(at, instr, found.miss + extra);
        shared = std::max<Ticks>(0, at.hbm.of(found.miss + extra) - at.l2.of(found.miss + extra));
    }
    at.work[instr.pipe] += time - shared;
    const Ticks hbm = share_of_hbm(at, write ? 0 : found.miss, found.written_back);
    const Ticks through = std::max(start + time, hbm ? at.way.book(start, hbm) : 0);
    if (at.share.scaled >= at.hbm.scaled) transfer(at, hbm, through);
    Ticks begun = start;
    if (!write && start > at.pipe[instr.pipe].free) {  // an idle pipe waits until the core's writes leave it the path
        begun = through - time;
        at.totals.wait[instr.pipe][ASC_MTE3] += begun - start;
    }
    const Ticks latency = !write ? latency_ : instr.pipe == ASC_FIX ? fix_latency_ : write_latency_;
    at.totals.contention += contention;
    run(at, instr, begun, through, through + latency);
}

// ---- synchronisation ---------------------------------------------------------------------------------------------

Timeline::Moment &Timeline::token(Core &at, uint32_t token) {
    if (token >= SHARED_TOKEN) return shared_tokens_[token];
    if (token >= MOST_TOKENS) throw std::out_of_range("the timing pass was given token " + std::to_string(token));
    if (token >= at.tokens.size()) at.tokens.resize(token + 1);
    return at.tokens[token];
}

void Timeline::signal(Core &at, const Instr &instr) {
    at.clock += issue_;
    at.totals.busy[ASC_S] += issue_;
    const bool all = instr.pipe >= ASC_PIPES;
    const Ticks time = all ? at.drained() : instr.pipe == ASC_S ? at.clock : at.pipe[instr.pipe].reached(at.clock);
    Moment &moment = token(at, instr.token);
    if (instr.a && moment.time >= time) return;  // others have announced it later
    moment = {time, all ? static_cast<uint8_t>(ASC_S) : instr.pipe};
}

void Timeline::wait(Core &at, const Instr &instr) {
    at.clock += issue_;
    at.totals.busy[ASC_S] += issue_;
    Moment until = token(at, instr.token);
    if (instr.token >= SHARED_TOKEN) {
        until = {until.time + (instr.token >= EVENT_TOKEN ? event_ : sync_), CAUSE_SYNC};
        launch_.flags = true;
    }
    if (instr.pipe < ASC_PIPES) return hold(at, instr.pipe, until);
    for (uint8_t pipe = 0; pipe < ASC_PIPES; ++pipe) hold(at, pipe, until);
}

void Timeline::hold(Core &at, uint8_t number, Moment until) {
    if (number == ASC_S) {
        if (until.time > at.clock) at.totals.wait[ASC_S][until.pipe] += until.time - at.clock;
        at.clock = std::max(at.clock, until.time);
    } else if (until.time > at.pipe[number].gate) {
        at.pipe[number].gate = until.time;
        at.pipe[number].gate_from = until.pipe;
    }
}

void Timeline::barrier(Core &at, const Instr &instr) {
    at.clock += issue_;
    at.totals.busy[ASC_S] += issue_;
    if (instr.pipe < ASC_PIPES) return hold(at, instr.pipe, {at.pipe[instr.pipe].done, instr.pipe});
    for (uint8_t pipe = 1; pipe < ASC_PIPES; ++pipe) hold(at, ASC_S, {at.pipe[pipe].done, pipe});
}

// ---- Matmul ------------------------------------------------------------------------------------------------------

// The matrices and the bias are fetched from HBM once; the block sizes determine how often they are read again from L2.
void Timeline::matmul(Core &at, const Instr &instr) {
    const Ticks start = at.filler.now = issue(at, instr.pipe);
    Costs::Matmul cost = costs_.matmul(instr, at.cube_l2, at.fix);
    Touch found;
    for (const int matrix : {0, 1, 3}) touch_rows(at, instr.matrix[matrix], false, found);
    Touch stored;
    touch_rows(at, instr.matrix[2], true, stored);
    at.work[instr.pipe] += costs_.matmul_time(cost);
    at.from_l2 += costs_.matmul_time(cost);
    const Ticks fetching = std::max<Ticks>(0, at.cube_hbm.of(found.miss) - at.cube_l2.of(found.miss));
    cost.mte2 += fetching;
    cost.mte2 += ticks(chip_.copy.shared) * static_cast<Ticks>((launch_.cubes.size() - 1) * cost.parts);
    at.totals.busy[ASC_MTE1] += cost.mte1;
    at.totals.busy[ASC_MTE2] += cost.mte2;
    at.totals.busy[ASC_FIX] += cost.fix;
    at.totals.hbm_read += found.miss;
    at.totals.hbm_write += found.written_back + stored.written_back;
    at.totals.l2_read += cost.read - std::min(cost.read, found.miss);
    at.totals.l2_write += cost.written;
    const Ticks end = at.cube->book(start, costs_.matmul_time(cost));
    share_of_hbm(at, found.miss, found.written_back + stored.written_back);
    transfer(at, fetching, end);
    run(at, instr, std::max(start, end - cost.mac), end, end);
    at.pipe[instr.pipe].free = end;
}

void Timeline::touch_rows(Core &at, const MatrixRows &rows, bool write, Touch &touch) {
    for (uint32_t row = 0; row < rows.count; ++row)
        l2_.burst(at.filler, rows.begin + row * rows.pitch, rows.bytes, write, false, touch);
}

}  // namespace sim

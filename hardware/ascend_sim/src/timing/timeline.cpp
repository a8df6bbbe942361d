#include "timeline.h"

#include <algorithm>

namespace sim {

using namespace timing;

namespace {

constexpr uint32_t EVENT_TOKEN = 0xc0000000u;   // of IBSet
constexpr uint32_t SHARED_TOKEN = 0x80000000u;  // tokens from here on are shared by all cores of a launch
constexpr uint64_t PAGE = 2u << 20;             // of global memory
constexpr uint32_t MOST_TOKENS = 1u << 16, MOST_LINES = 1u << 16;

}  // namespace

Timeline::Timeline(const Chip &chip, L2 &l2, std::function<void()> at_work)
    : chip_(chip), costs_(chip_), l2_(l2), at_work_(std::move(at_work)), issue_(ticks(chip.scalar.issue)),
      local_(ticks(chip.scalar.local)), load_use_(ticks(chip.scalar.load_use)), hit_(ticks(chip.scalar.global_hit)),
      miss_(ticks(chip.scalar.global_miss)), copy_issue_(ticks(chip.copy.issue)), copy_burst_(ticks(chip.copy.burst)),
      copy_page_(ticks(chip.copy.page)), copy_turn_(ticks(chip.copy.turn)), latency_(ticks(chip.copy.latency)),
      write_latency_(ticks(chip.copy.write_latency)), fix_latency_(ticks(chip.cube.fix_latency)),
      hbm_write_(ticks(chip.memory.hbm_write)), sync_(ticks(chip.launch.sync_cycles)),
      event_(ticks(chip.launch.event_cycles)), atomic_(ticks(chip.memory.atomic)) {}

void Timeline::trace_to(FILE *file) { trace_ = std::make_unique<Trace>(file, chip_); }

void Timeline::finish_trace() {
    if (trace_) trace_->finish();
    trace_.reset();
}

void Timeline::play(const Step &step) {
    if (step.kind == Kind::CoreBegin) return begin_core(step.core);
    Core &at = core(step.core);
    if (at.waiting) release_sync(at);
    switch (step.kind) {
        case Kind::CoreEnd: return end_core(at);
        case Kind::CopyIn: return copy(at, step, false);
        case Kind::CopyOut: return copy(at, step, true);
        case Kind::Overhead: return scalar(at, step);
        case Kind::Signal: return signal(at, step);
        case Kind::Wait: return wait(at, step);
        case Kind::Barrier: return barrier(at, step);
        case Kind::SyncAll: return sync_all(at);
        case Kind::Matmul: return matmul(at, step);
        default: return plain(at, step);
    }
}

// ---- pipes -------------------------------------------------------------------------------------------------------

// S spends its issue time. If the pipe's queue is full, S waits for a slot.
Times Timeline::issue(Core &at, uint8_t number) {
    Pipe &pipe = at.pipe[number];
    use_loaded(at);
    at.clock += issue_;
    totals_.busy[ASC_S] += issue_;
    if (number == ASC_S) return at.clock;
    Times &slot = pipe.starts[pipe.next];
    if (slot.time > at.clock.time) totals_.wait[ASC_S][number] += slot.time - at.clock.time;
    at.clock = latest(at.clock, slot);
    const Times start = latest(latest(pipe.free, pipe.gate), at.clock);
    if (start.time > pipe.free.time) {
        const uint8_t cause = pipe.gate.time >= at.clock.time ? pipe.gate_from : static_cast<uint8_t>(ASC_S);
        totals_.wait[number][cause] += start.time - pipe.free.time;
    }
    slot = start;
    pipe.next = pipe.next + 1 == pipe.starts.size() ? 0 : pipe.next + 1;
    return start;
}

// The pipe accepts the next instruction at `free`; this instruction's results are ready at `done`.
void Timeline::run(Core &at, const Step &step, Ticks start, Times free, Times done) {
    Pipe &pipe = at.pipe[step.pipe];
    const Ticks busy = done.time - std::max(start, std::min(pipe.done.time, done.time));
    totals_.busy[step.pipe] += busy;
    ++totals_.instructions[step.pipe];
    pipe.free = free;
    pipe.done = latest(pipe.done, done);
    spend(step.line, step.pipe, busy);
    if (tracing_)
        trace_->add(at.block, at.place, step.pipe, names_[&step - steps_.data()], step.line, start, done.time);
}

void Timeline::plain(Core &at, const Step &step) {
    const Times start = issue(at, step.pipe);
    at.work[step.pipe] += step.value;
    run(at, step, start.time, start + step.value, start + step.value);
}

void Timeline::spend(int32_t line, uint8_t pipe, Ticks time) {
    if (line <= 0 || static_cast<uint32_t>(line) >= MOST_LINES) return;
    if (static_cast<size_t>(line) >= lines_.size()) lines_.resize(line + 1);
    lines_[line].busy[pipe] += time;
}

void Timeline::scalar(Core &at, const Step &step) {
    if (step.flags & USES) use_loaded(at);
    at.clock += step.value;
    at.work[ASC_S] += step.value;
    totals_.busy[ASC_S] += step.value;
    if (step.ahead >= 0) at.loaded = at.clock + step.ahead;
}

void Timeline::use_loaded(Core &at) {
    const Ticks waits = std::max<Ticks>(0, at.loaded.time - at.clock.time);
    at.work[ASC_S] += waits;
    totals_.busy[ASC_S] += waits;
    at.clock = latest(at.clock, at.loaded);
}

// ---- copies ------------------------------------------------------------------------------------------------------

Touch Timeline::touch(Core &at, const Step &step, bool write) {
    const Move &move = moves_[step.value];
    const bool bypass = step.flags & BYPASS;
    const Use use = !write ? Use::READ : step.flags & ATOMIC ? Use::UPDATE : Use::WRITE;
    Touch touch;
    uint64_t address = move.gm;
    for (uint32_t i = 0; i < move.bursts; ++i, address += move.bytes + move.gap) {
        l2_.burst(at.filler, address, move.bytes, use, bypass, touch);
        touch.pages += i > 0 && address / PAGE != (address - move.bytes - move.gap) / PAGE;
    }
    if (write && bypass) touch.written_back += touch.bytes();  // written directly to HBM
    totals_.misaligned += touch.extra;
    (write ? totals_.bursts_out : totals_.bursts_in) += move.bursts;
    totals_.hbm_write += touch.written_back;
    totals_.hbm_read += touch.fetched();
    if (write) totals_.l2_write += touch.bytes();
    else totals_.l2_read += touch.hit + touch.joint - touch.parts();
    return touch;
}

// Bytes come at the rate of the core's port or at its share of HBM, whichever is slower. Of bytes that several cores
// fetch together each fetches its part, and the rest comes from L2. A copy that begins in another page than the one
// before it ended in starts later at the port; the requests of other cores hide that.
Ticks Timeline::read(Core &at, const Move &move, const Touch &found, uint64_t extra) {
    const Rates &rates = launch_.rates;
    const uint64_t bytes = found.miss + found.joint + extra;
    if (bytes == 0) return 0;
    const bool turned = move.gm / PAGE != at.page;
    at.page = (move.gm + (move.bursts - 1) * (move.bytes + move.gap)) / PAGE;
    return std::max((turned ? copy_turn_ : 0) + rates.port.of(bytes),
                    rates.share.of(found.fetched() + extra) + rates.l2.of(found.joint - found.parts()));
}

// What bytes take at an equal share of HBM.
Ticks Timeline::share_of_hbm(Core &at, uint64_t read, uint64_t written) const {
    const Rate &share = launch_.rates.share;
    const Ticks time = share.of(read) + share.of(written) * hbm_write_ / CYCLE;
    at.span.hbm += time;
    return time;
}

// The port transfers the bytes at its own rate; bytes from or to HBM also use this core's share of the HBM bandwidth.
void Timeline::copy(Core &at, const Step &step, bool write) {
    const Rates &rates = launch_.rates;
    const Move &move = moves_[step.value];
    const Times start = issue(at, step.pipe);
    at.filler.now = start.time;
    at.filler.takes = rates.hbm.of(static_cast<uint64_t>(move.bursts) * move.bytes);
    const Touch found = touch(at, step, write);
    const Ticks contention = rates.shared * found.shared + rates.contended * found.contended;
    Ticks time = copy_issue_ + copy_burst_ * move.bursts + copy_page_ * found.pages + contention;
    Ticks shared = 0;  // what it would not cost if the bytes were in L2, or stayed there
    const uint64_t extra = static_cast<uint64_t>(found.extra) * L2::SECTOR;
    if (write) {
        const Ticks out = (step.pipe == ASC_FIX ? rates.fix : rates.write).of(found.bytes() + extra);
        time += step.flags & ATOMIC ? out * atomic_ / CYCLE : out;
    } else {
        time += rates.l2.of(found.hit) + read(at, move, found, extra);
        const uint64_t fetched = found.fetched() + extra;
        shared = std::max<Ticks>(0, rates.hbm.of(fetched) - rates.l2.of(fetched));
        at.span.l2 += rates.l2_share.of(found.bytes());
    }
    const Ticks beside = time - shared;
    at.work[step.pipe] += beside;
    const Ticks hbm = share_of_hbm(at, found.fetched(), found.written_back);
    if (write) shared = std::max<Ticks>(0, hbm - time);
    const Ticks end = std::max(start.time + time, hbm ? at.way.book(start.time, hbm) : 0);
    const Left &left = !write ? launch_.left : step.pipe == ASC_FIX ? launch_.fixes_left : launch_.writes_left;
    const Times through{end, start.least + beside + left.of(shared, beside, start.least - launch_.since),
                        start.beside + beside};
    if (rates.share.scaled >= rates.hbm.scaled) transfer(at.span.traffic, hbm, end);
    Ticks begun = start.time;
    if (!write &&
        begun > at.pipe[step.pipe].free.time) {  // an idle pipe waits until the core's writes leave it the path
        begun = end - time;
        totals_.wait[step.pipe][ASC_MTE3] += begun - start.time;
    }
    const Ticks latency = !write ? latency_ : step.pipe == ASC_FIX ? fix_latency_ : write_latency_;
    totals_.contention += contention;
    run(at, step, begun, through, through + latency);
}

void Timeline::transfer(Traffic &traffic, Ticks time, Ticks end) const {
    traffic.add({time, time * ((end - time / 2 - launch_.since) / CYCLE) / CYCLE});
}

// ---- synchronisation ---------------------------------------------------------------------------------------------

timing::Moment &Timeline::token(Core &at, uint32_t token) {
    if (token >= SHARED_TOKEN) return shared_tokens_[token];
    if (token >= MOST_TOKENS) throw std::out_of_range("the timing pass was given token " + std::to_string(token));
    if (token >= at.tokens.size()) at.tokens.resize(token + 1);
    return at.tokens[token];
}

void Timeline::signal(Core &at, const Step &step) {
    at.clock += issue_;
    totals_.busy[ASC_S] += issue_;
    const bool all = step.pipe >= ASC_PIPES;
    const Times time = all ? at.drained() : step.pipe == ASC_S ? at.clock : at.pipe[step.pipe].reached(at.clock);
    Moment &moment = token(at, static_cast<uint32_t>(step.value));
    const uint8_t pipe = all ? static_cast<uint8_t>(ASC_S) : step.pipe;
    if (!(step.flags & LATEST)) moment = {time, pipe};
    else
        moment = {latest(moment.at, time),
                  moment.at.time >= time.time ? moment.pipe : pipe};  // by the last to announce it
}

void Timeline::wait(Core &at, const Step &step) {
    at.clock += issue_;
    totals_.busy[ASC_S] += issue_;
    Moment until = token(at, static_cast<uint32_t>(step.value));
    if (step.value >= SHARED_TOKEN) {
        // IBWait reads the event from global memory, even if it was set long ago; a flag between cores is a register.
        const bool event = step.value >= EVENT_TOKEN;
        until = {event ? latest(until.at, at.clock) + event_ : until.at + sync_, CAUSE_SYNC};
        launch_.flags = true;
    }
    if (step.pipe < ASC_PIPES) return hold(at, step.pipe, until);
    for (uint8_t pipe = 0; pipe < ASC_PIPES; ++pipe) hold(at, pipe, until);
}

void Timeline::hold(Core &at, uint8_t number, Moment until) {
    if (number == ASC_S) {
        totals_.wait[ASC_S][until.pipe] += std::max<Ticks>(0, until.at.time - at.clock.time);
        at.clock = latest(at.clock, until.at);
        return;
    }
    Pipe &pipe = at.pipe[number];
    if (until.at.time > pipe.gate.time) pipe.gate_from = until.pipe;
    pipe.gate = latest(pipe.gate, until.at);
}

void Timeline::barrier(Core &at, const Step &step) {
    at.clock += issue_;
    totals_.busy[ASC_S] += issue_;
    if (step.pipe < ASC_PIPES) return hold(at, step.pipe, {at.pipe[step.pipe].done, step.pipe});
    for (uint8_t pipe = 1; pipe < ASC_PIPES; ++pipe) hold(at, ASC_S, {at.pipe[pipe].done, pipe});
}

// ---- Matmul ------------------------------------------------------------------------------------------------------

// The matrices and the bias are fetched from HBM once; the block sizes determine how often they are read again from L2.
// The cube comes to them when it begins the product. They are there when it ends: its next product finds them in L2.
void Timeline::matmul(Core &at, const Step &step) {
    const Rates &rates = launch_.rates;
    const Times start = issue(at, step.pipe);
    const Product &product = products_[step.value];
    Costs::Matmul cost = product.cost;
    Cube &cube = launch_.cubes[at.cube];
    const Times begin = cube.begins(start, costs_.matmul_time(cost));
    at.filler.now = begin.time;
    at.filler.takes = std::min(launch_.window, costs_.matmul_time(cost) - L2::UNIT);
    Touch found;
    for (const int matrix : {0, 1, 3}) touch_rows(at, product.matrix[matrix], Use::READ, found);
    Touch stored;
    touch_rows(at, product.matrix[2], step.flags & ATOMIC ? Use::UPDATE : Use::WRITE, stored);
    at.work[step.pipe] += costs_.matmul_time(cost);
    at.span.products += costs_.matmul_time(cost);
    const uint64_t bytes = found.miss + found.joint;
    const uint64_t fetched = found.fetched() + stored.fetched();
    const Ticks from_hbm = rates.cube_share.of(fetched) + rates.cube_l2.of(found.joint - found.parts());
    const Ticks in_l2 = rates.cube_l2.of(bytes), by_port = std::max<Ticks>(0, rates.port.of(bytes) - in_l2);
    const Ticks fetching = std::max(by_port, from_hbm - in_l2);
    Costs::Matmul least = cost;
    cost.mte2 += fetching;
    cost.mte2 += ticks(chip_.copy.shared) * static_cast<Ticks>((launch_.cubes.size() - 1) * cost.parts);
    const Ticks left = launch_.cubes_left.of(fetching, costs_.matmul_time(least), begin.least - launch_.since);
    least.mte2 += launch_.cubes_left.ends.empty() ? 0 : std::max(by_port, left);
    totals_.busy[ASC_MTE1] += cost.mte1;
    totals_.busy[ASC_MTE2] += cost.mte2;
    totals_.busy[ASC_FIX] += cost.fix;
    totals_.hbm_read += fetched;
    totals_.hbm_write += found.written_back + stored.written_back;
    totals_.l2_read += cost.read - std::min(cost.read, found.fetched());
    totals_.l2_write += cost.written;
    at.span.l2 += rates.l2_share.of(cost.read);
    const Ticks time = costs_.matmul_time(cost);
    const Times end = cube.book(start, {time, costs_.matmul_time(least), time});
    share_of_hbm(at, fetched, found.written_back + stored.written_back);
    if (fetching > by_port) transfer(at.span.fetches, fetching, end.time);
    run(at, step, std::max(start.time, end.time - cost.mac), end, end);
    at.pipe[step.pipe].free = end;
}

void Timeline::touch_rows(Core &at, const MatrixRows &rows, Use use, Touch &touch) {
    for (uint32_t row = 0; row < rows.count; ++row)
        l2_.burst(at.filler, rows.begin + row * rows.pitch, rows.bytes, use, false, touch);
}

}  // namespace sim

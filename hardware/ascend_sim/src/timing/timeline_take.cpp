// Taking records: they are kept as steps until their phase is timed. Scalar code between two other records is one step;
// loops of scalar accesses have the same times as their accesses one by one.
#include <algorithm>

#include "timeline.h"

namespace sim {

using namespace timing;

// What a period of a loop changes: the clock and the sums, all in proportion to the number of periods.
struct Timeline::Period {
    Period(const Unit &unit, const Totals &totals)
        : clock(unit.clock), ahead(unit.ahead), instructions(totals.instructions[ASC_S]),
          accesses(totals.scalar_accesses), misses(totals.cache_misses) {}
    Ticks clock;
    int32_t ahead;
    uint64_t instructions, accesses, misses;
};

namespace {

// For how many periods after the first `done` all accesses stay in the cache lines of the period before.
uint32_t periods_in_lines(const ScalarLoop &loop, uint32_t done) {
    uint32_t least = loop.count / loop.period - done;
    for (uint32_t i = 0; i < loop.period && least; ++i) {
        const ScalarLoop::Slot &slot = loop.slots[i];
        if (!slot.global || slot.step == 0) continue;
        const uint64_t last = loop.where((done - 1) * loop.period + i) % DataCache::LINE;
        const uint64_t room = slot.step > 0 ? DataCache::LINE - 1 - last : last;
        const uint64_t step = slot.step > 0 ? static_cast<uint64_t>(slot.step) : -static_cast<uint64_t>(slot.step);
        least = static_cast<uint32_t>(std::min<uint64_t>(least, room / step));
    }
    return least;
}

}  // namespace

void Timeline::take(const Instr &instr) {
    ++records_;
    if (instr.kind == Kind::LaunchBegin) return begin_launch(instr);
    if (!open_) return;
    if (instr.kind == Kind::LaunchEnd) return end_launch();
    if (instr.kind == Kind::CoreBegin) forget(instr.core);
    Unit &at = unit(instr.core);
    resume(at);
    if (steps_.size() + 8 * products_.size() > MOST_STEPS) time_at_once();
    switch (instr.kind) {
        case Kind::CoreEnd: keep(at, instr, 0); return forget(instr.core);
        case Kind::Vector: return vector(at, instr);
        case Kind::CopyIn:
        case Kind::CopyOut:
            moves_.push_back({instr.gm, instr.gm_gap, instr.bursts, instr.burst_bytes});
            return keep(at, instr, static_cast<int64_t>(moves_.size() - 1),
                        static_cast<uint8_t>((instr.bypass ? BYPASS : 0) | (instr.atomic ? ATOMIC : 0)));
        case Kind::PlainCode: return scalar(at, instr.core, instr.line, CYCLE * instr.a);
        case Kind::ScalarLocal: return local_scalar(at, instr.core, instr.line, instr.b != 0);
        case Kind::ScalarGlobal: return global_scalar(at, instr.core, instr.line, instr.gm, instr.b != 0);
        case Kind::CacheClean: return clean(at, instr);
        case Kind::Overhead: return scalar(at, instr.core, instr.line, costs_.overhead(instr.op));
        case Kind::Signal: return keep(at, instr, instr.token, instr.a ? LATEST : 0);
        case Kind::Wait: return keep(at, instr, instr.token);
        case Kind::SyncAll: at.waiting = true; return keep(at, instr, 0);
        case Kind::CoreBegin:
        case Kind::Barrier: return keep(at, instr, 0);
        case Kind::Cube: return keep(at, instr, costs_.cube(instr));
        case Kind::Load: return keep(at, instr, costs_.load(instr));
        case Kind::Matmul: return product(at, instr);
        default: return;
    }
}

Timeline::Unit &Timeline::unit(uint32_t block) {
    if (taking_ && taken_ == block) return *taking_;
    Unit &at = units_.try_emplace(block, static_cast<uint64_t>(chip_.scalar.cache_bytes), phase_).first->second;
    taking_ = &at;
    taken_ = block;
    return at;
}

void Timeline::forget(uint32_t block) {
    units_.erase(block);
    taking_ = nullptr;
}

// When a core resumes, all others have arrived, because the kernel process runs them one after another. Some may already
// be at the next SyncAll.
void Timeline::resume(Unit &at) {
    if (!at.waiting) return;
    at.waiting = false;
    if (++at.phase <= phase_) return;
    time_phase();
    phase_ = at.phase;
}

void Timeline::keep(Unit &at, const Instr &instr, int64_t value, uint8_t flags) {
    steps_.push_back({instr.kind, instr.pipe, flags, -1, instr.core, instr.line, value});
    if (trace_) names_.push_back(instruction_name(instr));
    const bool waits = instr.kind == Kind::Signal || instr.kind == Kind::Wait || instr.kind == Kind::Barrier ||
                       instr.kind == Kind::SyncAll;
    at.ahead = waits && at.ahead ? -1 : 0;  // other instructions are issued when what was read has arrived
}

// Reads follow each other at the pace of issue; `uses`: it waits first until what was read has arrived.
void Timeline::keep_scalar(Unit &at, uint32_t core, Ticks time, bool uses, bool reads) {
    const bool waits = uses && at.ahead < 0;
    if (waits || steps_.empty() || steps_.back().kind != Kind::Overhead || steps_.back().core != core) {
        steps_.push_back({Kind::Overhead, ASC_S, static_cast<uint8_t>(waits ? USES : 0), -1, core, 0, 0});
        if (trace_) names_.push_back("");
    }
    Ticks ahead = waits ? 0 : at.ahead;
    if (uses) time += ahead;
    at.clock += time;
    if (ahead > 0) ahead = std::max<Ticks>(0, ahead - time);
    at.ahead = static_cast<int32_t>(reads ? load_use_ : ahead);
    steps_.back().value += time;
    steps_.back().ahead = at.ahead;
}

void Timeline::scalar(Unit &at, uint32_t core, int32_t line, Ticks time, bool uses, bool reads) {
    keep_scalar(at, core, time, uses, reads);
    ++totals_.instructions[ASC_S];
    spend(line, ASC_S, time);
}

void Timeline::local_scalar(Unit &at, uint32_t core, int32_t line, bool write) {
    ++totals_.scalar_accesses;
    scalar(at, core, line, local_, write, !write);
}

void Timeline::global_scalar(Unit &at, uint32_t core, int32_t line, uint64_t address, bool write) {
    const bool hit = at.cache.hit(address);
    ++totals_.scalar_accesses;
    totals_.cache_misses += !hit;
    if (!hit) totals_.hbm_read += DataCache::LINE;
    scalar(at, core, line, hit ? hit_ : miss_, write);
}

void Timeline::clean(Unit &at, const Instr &instr) {
    if (instr.a) at.cache.drop_all();
    else at.cache.drop(instr.gm);
    scalar(at, instr.core, instr.line, costs_.overhead(instr.op));
}

void Timeline::vector(Unit &at, const Instr &instr) {
    const Costs::Vector cost = costs_.vector(instr);
    totals_.conflicts += cost.conflict;
    totals_.repeats += instr.repeats;
    totals_.ub += 256ull * instr.repeats * std::max<uint8_t>(1, instr.operands);
    keep(at, instr, cost.time);
}

void Timeline::product(Unit &at, const Instr &instr) {
    Product product{costs_.matmul(instr, launch_.rates.cube_l2, launch_.rates.fix), {}};
    std::copy(std::begin(instr.matrix), std::end(instr.matrix), product.matrix);
    products_.push_back(product);
    keep(at, instr, static_cast<int64_t>(products_.size() - 1), instr.atomic ? ATOMIC : 0);
}

// ---- loops of scalar accesses ------------------------------------------------------------------------------------

// A period that begins with the same time until the last read has arrived as the one before it, and that finds the same
// lines in the cache, takes the same time and leaves the cache as it was.
void Timeline::take_loop(const ScalarLoop &loop) {
    if (!open_) return;
    Unit &at = unit(loop.core);
    resume(at);
    const uint32_t whole = loop.count / loop.period;
    for (uint32_t done = 0; done < whole;) {
        const Period before(at, totals_);
        period(at, loop, done * loop.period, loop.period);
        ++done;
        const Period after(at, totals_);
        if (loop.varied || after.ahead != before.ahead || after.misses != before.misses) continue;
        const uint32_t times = periods_in_lines(loop, done);
        again(at, loop, before, times);
        done += times;
    }
    period(at, loop, whole * loop.period, loop.count % loop.period);
}

void Timeline::period(Unit &at, const ScalarLoop &loop, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
        const ScalarLoop::Slot &slot = loop.slot(i);
        if (const uint32_t cycles = loop.code_before(i).cycles) {
            ++records_;
            scalar(at, loop.core, loop.line_before(i), CYCLE * cycles);
        }
        ++records_;
        if (slot.global) global_scalar(at, loop.core, slot.line, loop.where(i), slot.write);
        else local_scalar(at, loop.core, slot.line, slot.write);
    }
}

void Timeline::again(Unit &at, const ScalarLoop &loop, const Period &before, uint32_t times) {
    const Period after(at, totals_);
    at.clock += (after.clock - before.clock) * times;
    steps_.back().value += (after.clock - before.clock) * times;
    totals_.instructions[ASC_S] += (after.instructions - before.instructions) * times;
    totals_.scalar_accesses += (after.accesses - before.accesses) * times;
    records_ += (after.instructions - before.instructions) * times;
    for (uint32_t i = 0; i < loop.period; ++i) {
        const ScalarLoop::Slot &slot = loop.slots[i];
        spend(loop.line_before(i), ASC_S, CYCLE * slot.code.cycles * times);
        spend(slot.line, ASC_S, (slot.global ? hit_ : local_) * times);
    }
}

}  // namespace sim

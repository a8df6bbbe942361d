// Loops of scalar accesses: the same times as their accesses one by one, in fewer steps.
#include <algorithm>

#include "timeline.h"
#include "timeline_core.h"

namespace sim {

// What a period of a loop changes: the clock and the sums, all in proportion to the number of periods.
struct Timeline::ScalarTime {
    explicit ScalarTime(const Core &at)
        : clock(at.clock), ahead(std::max<Ticks>(0, at.loaded - at.clock)), work(at.work[ASC_S]),
          busy(at.totals.busy[ASC_S]), instructions(at.totals.instructions[ASC_S]), accesses(at.totals.scalar_accesses),
          misses(at.totals.cache_misses) {}
    Ticks clock, ahead, work, busy;  // ahead: how long until what was read has arrived
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

// A period that begins with the same time until the last read has arrived as the one before it, and that finds the same
// lines in the cache, takes the same time and leaves the cache as it was.
void Timeline::take_loop(const ScalarLoop &loop) {
    Core &at = core(loop.core);
    if (at.waiting) release_sync(at);
    const uint32_t whole = loop.count / loop.period;
    for (uint32_t done = 0; done < whole;) {
        const ScalarTime before(at);
        period(at, loop, done * loop.period, loop.period);
        ++done;
        const ScalarTime after(at);
        if (loop.varied || after.ahead != before.ahead || after.misses != before.misses) continue;
        const uint32_t times = periods_in_lines(loop, done);
        again(at, loop, before, times);
        done += times;
    }
    period(at, loop, whole * loop.period, loop.count % loop.period);
}

void Timeline::period(Core &at, const ScalarLoop &loop, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
        const ScalarLoop::Slot &slot = loop.slot(i);
        if (const uint32_t cycles = loop.code_before(i).cycles) {
            ++records_;
            scalar(at, loop.line_before(i), CYCLE * cycles);
        }
        ++records_;
        if (slot.global) global_scalar(at, slot.line, loop.where(i));
        else local_scalar(at, slot.line, slot.write);
    }
}

void Timeline::again(Core &at, const ScalarLoop &loop, const ScalarTime &before, uint32_t times) {
    const ScalarTime after(at);
    at.clock += (after.clock - before.clock) * times;
    at.loaded += (after.clock - before.clock) * times;
    at.work[ASC_S] += (after.work - before.work) * times;
    at.totals.busy[ASC_S] += (after.busy - before.busy) * times;
    at.totals.instructions[ASC_S] += (after.instructions - before.instructions) * times;
    at.totals.scalar_accesses += (after.accesses - before.accesses) * times;
    records_ += (after.instructions - before.instructions) * times;
    for (uint32_t i = 0; i < loop.period; ++i) {
        const ScalarLoop::Slot &slot = loop.slots[i];
        spend(loop.line_before(i), ASC_S, CYCLE * slot.code.cycles * times);
        spend(slot.line, ASC_S, (slot.global ? hit_ : local_) * times);
    }
}

}  // namespace sim

#include "access_loops.h"

#include "kernel_process.h"
#include "protocol/scalar_loop.h"

namespace sim::kernel_process::access_loops {
namespace {

constexpr uint32_t KEPT = 128, MOST = ScalarLoop::MOST;  // two periods, and the one before them
constexpr uint32_t MOST_PENDING = 1u << 16, MOST_WORDS = Ring::WORDS / 4;
constexpr uint32_t ODD = 16, VARIED = 64;

struct Seen {
    uint64_t where, call;  // call: kind, type and line
    PlainCode code;
};

Seen seen[KEPT];
uint32_t count;  // accesses since the last other record; seen[count % KEPT] is the next
uint32_t period, phase;
int64_t steps[MOST];      // by phase
uint32_t runs[MOST + 1];  // by period: for how many accesses it has held
uint32_t pending, first_phase;
uint64_t first_word;
uint32_t looped;             // accesses of this loop
uint32_t shunned, patience;  // periods up to `shunned` are not taken for the next `patience` accesses
uint32_t odd;                // grows with each access whose plain code is another than in the period before
bool varied;

uint64_t call_of(const Access &access) {
    return static_cast<uint64_t>(static_cast<uint32_t>(access.line)) << 32 | access.dtype << 2 | access.global << 1 |
           access.write;
}

const Seen &back(uint32_t accesses) { return seen[(count - accesses) % KEPT]; }

bool goes_on(uint64_t where, uint64_t call) {
    const Seen &before = back(period);
    return call == before.call && where == before.where + static_cast<uint64_t>(steps[phase]);
}

void remember(uint64_t where, uint64_t call, PlainCode code) {
    seen[count++ % KEPT] = {where, call, code};
    if (count == 0x80000000u) count -= 0x40000000u;  // a multiple of KEPT
    if (!period) return;
    ++looped;
    phase = phase + 1 == period ? 0 : phase + 1;
}

// Whether the last access repeats the one `length` before it, by the same step as that one.
bool repeats(uint32_t length) {
    if (count < 2 * length + 1) return false;
    const Seen &last = back(1), &before = back(1 + length), &first = back(1 + 2 * length);
    const auto step = static_cast<int64_t>(last.where - before.where);
    return last.call == before.call && before.call == first.call &&
           before.where + static_cast<uint64_t>(step) == last.where &&
           first.where + static_cast<uint64_t>(step) == before.where && step == static_cast<int32_t>(step);
}

void search() {
    if (patience && --patience == 0) shunned = 0;
    for (uint32_t length = 1; length <= MOST; ++length) {
        runs[length] = repeats(length) ? runs[length] + 1 : 0;
        if (period || length <= shunned || runs[length] < length) continue;
        period = length;
        phase = 0;
        for (uint32_t i = 0; i < length; ++i)
            steps[i] = static_cast<int64_t>(back(length - i).where - back(2 * length - i).where);
    }
    looped = odd = 0;
    varied = false;
}

// A short loop may be the inner one of two, which together have a period, too.
void end_loop() {
    flush();
    if (period && looped + 3 * period <= MOST) {
        shunned = period;
        patience = 4 * MOST;
    }
    period = 0;
    for (uint32_t &run : runs) run = 0;
}

void pend(const Access &access, PlainCode code) {
    const uint32_t words = varied + access.write;
    if (pending == MOST_PENDING || progress.words_head + words - first_word > MOST_WORDS) flush();
    if (pending++ == 0) {
        first_phase = phase;
        first_word = progress.words_head;
    }
    if (varied) write_word(code.word());
    if (access.write) write_word(access.bits);
}

}  // namespace

bool take(const Access &access) {
    if (!period) return false;
    const uint64_t call = call_of(access);
    if (!goes_on(access.where, call)) {
        end_loop();
        return false;
    }
    const PlainCode code = unsent_code();
    if (!varied && code != back(period).code) {
        if ((odd += ODD) < VARIED) return false;  // is sent alone; the loop goes on
        flush();
        varied = true;
    }
    if (odd) --odd;
    pend(access, code);
    report_code(access.line);
    remember(access.where, call, code);
    return true;
}

void sent(const Access &access, PlainCode code) {
    const uint64_t call = call_of(access);
    if (period && !goes_on(access.where, call)) end_loop();
    remember(access.where, call, code);
    if (!period && ring().call.loops) search();
}

void flush() {
    if (!pending) return;
    args_access_loop args{};
    args.period = period;
    args.count = pending;
    args.varied = varied;
    for (uint32_t i = 0; i < period; ++i) args.steps.bytes[i] = static_cast<int32_t>(steps[(first_phase + i) % period]);
    pending = 0;
    new (claim_without_code(OP_access_loop, current_line())->payload) args_access_loop(args);
    send();
}

void forget() {
    if (count == 0) return;
    count = 0;
    end_loop();
}

}  // namespace sim::kernel_process::access_loops

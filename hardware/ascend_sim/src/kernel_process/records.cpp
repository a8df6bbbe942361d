// Writes records into the ring and counts the plain code between them.
#include "access_loops.h"
#include "kernel_process.h"
#include "pointers.h"

#include <cstdio>
#include <cstring>

namespace sim::kernel_process {

Progress progress;

namespace {

uint64_t code_base = ~0ull;
uint32_t asked;  // queries so far

// Accesses of the scalar unit keep its cached blocks up to date, so they do not clear them.
constexpr bool scalar_access(uint16_t op) {
    return op == OP_access_loop || op == OP_reread || op == OP_read_local || op == OP_read_global ||
           op == OP_write_local || op == OP_write_global;
}

// Waits until the device has read far enough that a position has room below `size`.
void await_room(const std::atomic<uint64_t> &read, uint64_t written, uint64_t *tail, uint64_t size) {
    for (int spin = 0;; ++spin) {
        *tail = read.load(std::memory_order_acquire);
        if (static_cast<int64_t>(written - *tail) < static_cast<int64_t>(size)) return;
        if (progress.ring->stop.load(std::memory_order_relaxed)) leave();
        if (spin < kSpins) {
            pause_briefly();
            continue;
        }
        progress.ring->kernel_sleeps.store(1);
        if (static_cast<int64_t>(written - read.load()) >= static_cast<int64_t>(size))
            sleep_while(&progress.ring->kernel_sleeps, 1);
    }
}

Record *next_record(uint16_t op, int32_t line, PlainCode code) {
    if (progress.head - progress.tail >= Ring::SLOTS)
        await_room(progress.ring->tail, progress.head, &progress.tail, Ring::SLOTS);
    Record *record = &progress.ring->records[progress.head % Ring::SLOTS];
    record->op = op;
    record->line = line;
    record->code = code;
    return record;
}

}  // namespace

void attach(Ring *ring) {
    progress = Progress{};
    progress.ring = ring;
    allow_blocks(0);
}

void allow_blocks(uint64_t of_the_other) { progress.blocks_allowed = ring().call.budget + of_the_other; }

Ring &ring() { return *progress.ring; }

void leave() { _exit(0); }

void cover_from(uintptr_t base) { code_base = base; }

bool is_function(uintptr_t address) {
    const uint64_t where = address - code_base;
    return where < Ring::COVERED_BYTES && progress.ring->functions[where / 64] >> (where % 64) & 1;
}

int32_t current_line() { return progress.line; }

Record *claim(uint16_t op, int32_t line) {
    pointers::flush();
    access_loops::flush();
    Record *record = next_record(op, line, unsent_code());
    report_code(line);
    if (!scalar_access(op)) {
        forget_blocks();
        access_loops::forget();
    }
    return record;
}

Record *claim_without_code(uint16_t op, int32_t line) {
    access_loops::flush();
    return next_record(op, line, {});
}

void await_words() { await_room(progress.ring->words_tail, progress.words_head, &progress.words_tail, Ring::WORDS); }

void send() {
    Ring *shared = progress.ring;
    shared->head.store(++progress.head);  // sequentially consistent: the device may be about to sleep
    if (shared->device_sleeps.load()) {
        shared->device_sleeps.store(0);
        wake(&shared->device_sleeps);
    }
}

const asc_block &await_answer() {
    Ring *shared = progress.ring;
    ++asked;
    for (int spin = 0; shared->answers.load(std::memory_order_acquire) != asked; ++spin) {
        if (shared->stop.load(std::memory_order_relaxed)) leave();
        if (spin < kSpins) {
            pause_briefly();
            continue;
        }
        shared->kernel_asks.store(1);
        if (shared->answers.load() != asked) sleep_while(&shared->answers, asked - 1);
    }
    return shared->answer;
}

void give_up(int32_t line) {
    claim(OP_gave_up, line);
    send();
    while (!ring().stop.load()) sleep_while(&ring().stop, 0);
    leave();
}

void misuse(int32_t line, const char *text) {
    asc_text message{};
    std::snprintf(message.bytes, sizeof message.bytes, "%s", text);
    wire::misuse(message, line);
    give_up(line);
}

}  // namespace sim::kernel_process

using namespace sim;
using namespace sim::kernel_process;

// The compiler puts a call of this at the start of every basic block of kernel code.
ASC_EXPORT __attribute__((zero_call_used_regs("used-gpr"))) void __sanitizer_cov_trace_pc(void) {
    const uint64_t where = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - code_base;
    if (where < Ring::COVERED_BYTES) {
        progress.ring->covered[where / 64] |= 1ull << (where % 64);
        progress.cycles += progress.ring->cycles[where];
    }
    if (++progress.blocks > progress.blocks_allowed) {
        claim(OP_budget_spent, 0);
        send();
        give_up(0);
    }
}

uint64_t front::platform(int32_t what) {
    if (what == 5) return core_kind();
    if (what == 6) return cores_per_block();
    return what >= 0 && what < 5 ? ring().call.platform[what] : 0;
}

// Writes records into the ring and counts the plain code between them.
#include "kernel_process.h"
#include "pointers.h"

#include <cstdio>
#include <cstring>

namespace sim::kernel_process {
namespace {

Ring *shared;
uint64_t head, tail;  // private positions; the shared ones are for the device
uint64_t code_base = ~0ull;
uint64_t blocks, blocks_sent;  // basic blocks run, and how many of them have been reported in records
uint64_t blocks_allowed;
uint32_t asked;  // queries so far
int32_t last_line;

// Accesses of the scalar unit keep its cached blocks up to date, so they do not clear them.
constexpr bool scalar_access(uint16_t op) {
    return op == OP_reread || op == OP_read_local || op == OP_read_global || op == OP_write_local ||
           op == OP_write_global;
}

void await_room() {
    for (int spin = 0;; ++spin) {
        tail = shared->tail.load(std::memory_order_acquire);
        if (head - tail < Ring::SLOTS) return;
        if (shared->stop.load(std::memory_order_relaxed)) leave();
        if (spin < kSpins) {
            pause_briefly();
            continue;
        }
        shared->kernel_sleeps.store(1);
        if (head - shared->tail.load() >= Ring::SLOTS) sleep_while(&shared->kernel_sleeps, 1);
    }
}

}  // namespace

void attach(Ring *ring) {
    shared = ring;
    head = tail = 0;
    blocks_allowed = ring->call.budget;
}

Ring &ring() { return *shared; }

void leave() { _exit(0); }

void cover_from(uintptr_t base) { code_base = base; }

int32_t current_line() { return last_line; }

Record *claim(uint16_t op, int32_t line) {
    pointers::flush();
    if (line > 0) last_line = line;
    if (head - tail >= Ring::SLOTS) await_room();
    Record *record = &shared->records[head % Ring::SLOTS];
    const uint64_t unsent = blocks - blocks_sent;
    record->op = op;
    record->line = line;
    record->blocks = unsent > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(unsent);
    blocks_sent = blocks;
    if (!scalar_access(op)) forget_blocks();
    return record;
}

void send() {
    shared->head.store(++head);  // sequentially consistent: the device may be about to sleep
    if (shared->device_sleeps.load()) {
        shared->device_sleeps.store(0);
        wake(&shared->device_sleeps);
    }
}

const asc_block &await_answer() {
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
    while (!shared->stop.load()) sleep_while(&shared->stop, 0);
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

#include "exports.inc"

// The compiler puts a call of this at the start of every basic block of kernel code.
ASC_EXPORT void __sanitizer_cov_trace_pc(void) {
    const uint64_t where = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - code_base;
    if (where < Ring::COVERED_BYTES) shared->covered[where / 64] |= 1ull << (where % 64);
    if (++blocks > blocks_allowed) {
        claim(OP_budget_spent, 0);
        send();
        give_up(0);
    }
}

extern "C" uint64_t asc_platform(int32_t what) {
    if (what == 5) return core_kind();
    if (what == 6) return cores_per_block();
    return what >= 0 && what < 5 ? shared->call.platform[what] : 0;
}

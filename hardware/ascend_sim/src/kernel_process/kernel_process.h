// The kernel process's side of the ABI. Untrusted: it runs in the same process as the author's code.
//
// It turns the calls of abi.h into records, runs the cores of a launch as fibers, and mirrors the device's on-chip
// allocations, so that an allocation needs no reply. It holds no tensor data.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "allocations.h"
#include "keyed_words.h"
#include "protocol/ring.h"

namespace sim::kernel_process {

// The kernel process's end of the ring.
void attach(Ring *ring);
Ring &ring();

// Returns a slot for the next record with its header filled in; send() publishes it.
Record *claim(uint16_t op, int32_t line);
void send();
const asc_block &await_answer();

// What was counted and sent so far. Positions are private; the shared ones are for the device.
struct Progress {
    Ring *ring;
    uint64_t head, tail, words_head, words_tail;
    uint64_t blocks, blocks_sent;  // basic blocks run, and how many of them have been reported in records
    uint64_t cycles, cycles_sent;  // what they cost, likewise
    uint64_t blocks_of_cores;      // of the blocks, those of launches that have ended
    uint64_t blocks_allowed;
    int32_t line;  // of the last record that named one
};
extern Progress progress;

// Allows the cores, or the host function, as many blocks as the budget has, besides those of the other.
void allow_blocks(uint64_t of_the_other);

// Plain code that ran since the last record.
inline PlainCode unsent_code() {
    const auto bounded = [](uint64_t n) { return n > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n); };
    return {bounded(progress.blocks - progress.blocks_sent), bounded(progress.cycles - progress.cycles_sent)};
}
// It is reported with a call in this line.
inline void report_code(int32_t line) {
    progress.blocks_sent = progress.blocks;
    progress.cycles_sent = progress.cycles;
    if (line > 0) progress.line = line;
}
// A slot for a record that reports no plain code: that of a loop, or of what has no price.
Record *claim_without_code(uint16_t op, int32_t line);

void await_words();
inline void write_word(uint64_t word) {
    if (progress.words_head - progress.words_tail >= Ring::WORDS) await_words();
    progress.ring->words[progress.words_head++ % Ring::WORDS] = word;
}

[[noreturn]] void leave();                // the device has stopped reading
[[noreturn]] void give_up(int32_t line);  // after a record that the device must reject

template <class Answer>
Answer ask() {
    static_assert(sizeof(Answer) <= sizeof(asc_block));
    Answer answer;
    send();
    __builtin_memcpy(&answer, &await_answer(), sizeof answer);
    return answer;
}

namespace wire {
#include "wire.inc"
}

// Calls that are answered in this process.
namespace front {
#include "front.inc"
}

// The load address of the kernel's code: basic blocks are counted from there.
void cover_from(uintptr_t base);
bool is_function(uintptr_t address);

// The allocations of the running core; calling it outside a launch is a misuse.
Allocations &allocations(int32_t line);
[[noreturn]] void misuse(int32_t line, const char *text);

// The author's line of the last record that named one.
int32_t current_line();

// What variables of the host function without a value hold.
KeyedWords &host_words();

bool in_core();  // not in the host function
// The running core, and the number of cores per block: in a mixed launch two vector cores, served by the cube core.
uint64_t core_kind();
uint64_t cores_per_block();

// Drops the scalar unit's cached blocks, because something else may have written.
void forget_blocks();

}  // namespace sim::kernel_process

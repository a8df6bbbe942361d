// The kernel process's side of the ABI, untrusted: it runs in the same process as the author's code.
//
// It turns the calls of abi.h into records, runs the cores of a launch as fibers, and keeps the same allocations of
// on-chip memory as the device, so that an allocation needs no reply. It holds no tensor data.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "allocations.h"
#include "protocol/ring.h"

namespace sim::kernel_process {

// The kernel process's end of the ring.
void attach(Ring *ring);
Ring &ring();

// A slot for the next record, its header filled in; send() publishes it.
Record *claim(uint16_t op, int32_t line);
void send();
const asc_block &await_answer();
[[noreturn]] void leave();                // the device has stopped listening
[[noreturn]] void give_up(int32_t line);  // after a record that the device must refuse

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

// Where the kernel's code was loaded: basic blocks are counted from there on.
void cover_from(uintptr_t base);

// What the running core has allocated; outside a launch there is none and the call is a misuse.
Allocations &allocations(int32_t line);
[[noreturn]] void misuse(int32_t line, const char *text);

// Which core runs, and how many run each block: in a mixed launch two vector cores, and the cube core works for them.
uint64_t core_kind();
uint64_t cores_per_block();

// Drops what the scalar unit has cached: something else may have written.
void forget_blocks();

}  // namespace sim::kernel_process

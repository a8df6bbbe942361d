// Recognises loops in the scalar accesses of a core and reports them as loops.
//
// Accesses are reported one by one until their last two periods show the same calls with constant steps between their
// addresses. From then on, accesses that go on in this way are counted and sent as one record (asc_access_loop), with the
// values that were written, in the ring's words. The device executes and times them as if they had come one by one. What
// is kept here is bounded: the last accesses, and at most a quarter of the words.
#pragma once
#include <cstdint>

#include "protocol/plain_code.h"

namespace sim::kernel_process::access_loops {

struct Access {
    uint64_t where;  // as in ScalarLoop
    uint32_t dtype;
    bool global, write;
    uint64_t bits;  // of a write
    int32_t line;
};

// True if the access goes on with the loop; it is then reported as a part of it.
bool take(const Access &access);
// Remembers an access that was sent as a record of its own, with the plain code before it.
void sent(const Access &access, PlainCode code);
// Sends the accesses that were counted. Every other record is sent after them.
void flush();
// Another record than an access was sent: no loop goes on beyond it.
void forget();

}  // namespace sim::kernel_process::access_loops

// Plain accesses of a kernel to global memory: a pointer that is followed, as in `p[i] += 1` with `__gm__ float *p`.
//
// The device owns global memory, and nothing is mapped at its addresses. Before an access a page is mapped there: what is
// read comes from the device, and what was written goes to it before the kernel does anything else. So every access is a
// scalar read or write of its own, checked and charged as those of GlobalTensor are.
//
// A store to a place that the same code has accessed before is not announced (see guard.h): such places are compared with
// what the device has. The code between the two runs straight on, apart from a call whose result is stored. So a place
// is compared until its function has returned, or has come again to a check that it has passed since.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim::kernel_process::pointers {

// A check in the code of a function, and the frame of this function.
struct Check { uintptr_t frame, code; };

struct Place {
    uintptr_t address;
    size_t bytes;
    uint64_t bits;  // as the device has them
    bool unsent;    // is written now
    Check check;
};
extern std::vector<Place> places;  // in the order of the checks: those of a caller come before those of its callees

// Prepares an access of a core; false if the address is not one of global memory.
bool read(uintptr_t address, size_t bytes, Check check);
bool write(uintptr_t address, size_t bytes, Check check);

// Sends what was written, if the device does not have it yet. Called before every access and every record.
void send_changed();
inline void flush() {
    if (!places.empty()) send_changed();
}
// Before an access of the function with this frame: those below it have returned.
inline void flush(uintptr_t frame) {
    flush();
    while (!places.empty() && places.back().check.frame < frame) places.pop_back();
}

// Called when a core stops: another one may change what it has read.
inline void forget() { flush(UINTPTR_MAX); }

}  // namespace sim::kernel_process::pointers

// Plain accesses of a kernel to global memory: a pointer that is followed, as in `p[i] += 1` with `__gm__ float *p`.
//
// The device owns global memory, and nothing is mapped at its addresses. Before an access a page is mapped there: what is
// read comes from the device, and what was written goes to it before the kernel does anything else. So every access is a
// scalar read or write of its own, checked and charged as those of GlobalTensor are. A store behind a read of the same
// place is not announced (see guard.h): such places are compared with what was read.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim::kernel_process::pointers {

// Prepares an access of a core; false if the address is not one of global memory.
bool read(uintptr_t address, size_t bytes);
bool write(uintptr_t address, size_t bytes);

// Sends what was written, if the device does not have it yet. Called before every access.
extern uintptr_t unsent;  // 0: nothing
extern size_t watched;    // number of places that were read
void send_unsent();
void send_changed();
inline void flush() {
    if (unsent) send_unsent();
    if (watched) send_changed();
}

// Called when a core stops: another one may change what it has read.
void forget();

}  // namespace sim::kernel_process::pointers

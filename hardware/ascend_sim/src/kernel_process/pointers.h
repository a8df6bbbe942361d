// Plain accesses of a kernel to global memory: a pointer that is followed, as in `p[i] += 1` with `__gm__ float *p`.
//
// The device owns global memory, and nothing is mapped at its addresses. Before an access a page is mapped there: what is
// read comes from the device, and what was written goes to it before the kernel does anything else. So every access is a
// scalar read or write of its own, checked and charged as those of GlobalTensor are.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim::kernel_process::pointers {

// What is about to be written, or has been, and not sent. No bytes: nothing.
struct Store {
    uintptr_t address = 0;
    size_t bytes = 0;
};
extern Store unsent;

// Prepares an access of a core; false if the address is not one of global memory.
bool read(uintptr_t address, size_t bytes);
bool write(uintptr_t address, size_t bytes);

// Sends what was written. Called before every access and every record, and when a core stops.
void send();
inline void flush() {
    if (unsent.bytes) send();
}

}  // namespace sim::kernel_process::pointers

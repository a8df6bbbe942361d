// Which memory kernel code may touch: its stack, its own constants and its arguments.
//
// The compiler puts a call before every access of kernel code (see KERNEL_FLAGS), and the linker sends the copies that
// it makes of larger objects here too. So what else lies in the kernel process (the ring, the count of basic blocks, which
// of them ran) is out of its reach: a pointer can point there, but an access fails. It cannot change return
// addresses, nor registers that a function keeps for its caller (kernel code keeps none); and as the binary screen
// refuses calls through pointers, it runs no other code than its own.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim::kernel_process::guard {

struct Range {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address, size_t bytes) const {
        return address - begin < end - begin && bytes <= end - address;
    }
};

// Set while nothing of the kernel has run yet.
void constants(Range image);
void arguments(Range copy);

// The stack that kernel code runs on, up to the frame of whoever called it; `host` is the part of the host function's
// stack that a core may read, where its arguments lie. Empty while the host function itself runs.
void stack(Range own, Range host);
Range own_stack();

bool may_read(uintptr_t address, size_t bytes);

// Where the stack of the calling function ends.
uintptr_t stack_pointer();

// What follows a call of kernel code trusts no register.
#if defined(__x86_64__)
#define ASC_TRUST_NO_REGISTER asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory")
#elif defined(__aarch64__)
#define ASC_TRUST_NO_REGISTER                                                                                          \
    asm volatile("" ::                                                                                                 \
                     : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v8", "v9", "v10", "v11", \
                       "v12", "v13", "v14", "v15", "memory")
#endif

}  // namespace sim::kernel_process::guard

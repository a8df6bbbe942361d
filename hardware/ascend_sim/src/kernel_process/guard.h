// Restricts the memory that kernel code may access: its stack, its constants and its arguments.
//
// The compiler inserts a call before an access of kernel code (see KERNEL_FLAGS), and the linker redirects its copies of
// larger objects here too. Code with an access that the compiler leaves out is refused (accesses.py). The rest of the
// kernel process (the ring, the count of basic blocks, the coverage bits) is therefore out of reach: a pointer can point
// there, but an access fails. Kernel code cannot change return addresses, nor registers that a function saves for its
// caller (kernel code saves none). Since the binary screen rejects calls through pointers, it can run only its own code.
//
// Some pointers are used without such a call: that of an object that a function returns, and one that was checked
// before, whether or not something was called meanwhile. They lie in words of the frame that no variable with an address
// has; frames.py finds them, and kernel code can neither read nor write them. Nor can it access memory below its stack
// pointer, where the frames of later calls will be.
//
// The compiler inserts no call before a store to a place that was accessed just before, as in `*p += 1`. So what may be
// read must be what may be written, or must not change by a write: constants and arguments are read-only pages, the host
// function's stack is compared after a core has run, and pointers.h finds such stores to global memory.
#pragma once
#include <cstddef>
#include <cstdint>

#include "keyed_words.h"
#include "protocol/ring.h"

namespace sim::kernel_process::guard {

struct Range {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address, size_t bytes) const {
        return address - begin < end - begin && bytes <= end - address;
    }
};

// Set before any kernel code has run.
void constants(Range image);
void arguments(Range copy);

// The stack that kernel code runs on, up to the frame of its caller. `host` is the part of the host function's stack
// that a core may read because its arguments are there; empty while the host function itself runs. `left` is what its
// variables without a value hold.
void stack(Range own, Range host, KeyedWords &left);
Range own_stack();

bool may_read(uintptr_t address, size_t bytes);

// Ends the process: kernel code accessed memory that it may not.
[[noreturn]] void refuse(uint16_t why = OP_strayed);

// The end of the calling function's stack.
uintptr_t stack_pointer();

// Clears the registers that a function saves for its caller, and those of vectors that a function with any number of
// arguments writes to its frame, before and after a call of kernel code: this finds nothing in them, and what follows does
// not depend on them.
#if defined(__x86_64__)
#define ASC_CLEAR_REGISTERS                                                                                            \
    asm volatile(                                                                                                      \
        "xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d;"            \
        "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3; pxor %%xmm4, %%xmm4;"     \
        "pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7" ::                                             \
            : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc", \
              "memory")
#elif defined(__aarch64__)
#define ASC_CLEAR_REGISTERS                                                                                            \
    asm volatile(                                                                                                      \
        "mov x19, 0; mov x20, 0; mov x21, 0; mov x22, 0; mov x23, 0; mov x24, 0; mov x25, 0; mov x26, 0;"              \
        "mov x27, 0; mov x28, 0; movi v0.2d, 0; movi v1.2d, 0; movi v2.2d, 0; movi v3.2d, 0; movi v4.2d, 0;"           \
        "movi v5.2d, 0; movi v6.2d, 0; movi v7.2d, 0" ::                                                               \
            : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0", "v1", "v2", "v3", "v4",      \
              "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "memory")
#endif

}  // namespace sim::kernel_process::guard

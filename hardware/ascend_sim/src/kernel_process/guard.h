// Restricts the memory that kernel code may access: its stack, its constants and its arguments.
//
// A call is inserted before each access of kernel code but those to the variables of a function's own frame at constant
// distances (assembly/guards.py), and the linker redirects its copies of larger objects here too. The rest of the kernel
// process (the ring, the count of basic blocks, the coverage bits) is therefore out of reach: a pointer can point there,
// but an access fails. Kernel code cannot change return addresses, nor registers that a function saves for its caller
// (kernel code saves none). It calls functions by their names alone, so it can run only its own code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

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

// The part of the host function's stack that a core may read because its arguments are there. A core fetches each word
// once.
class HostStack {
public:
    explicit HostStack(Range range) : range_(range), fetched_((range.end - range.begin) / sizeof(uint64_t) + 2) {}

    bool holds(uintptr_t address, size_t bytes) const { return range_.holds(address, bytes); }
    bool has_fetched(uintptr_t address, size_t bytes) const;
    // Returns how many cycles it takes: one for each word beyond a few, without those that a copy is charged for.
    size_t fetch(uintptr_t address, size_t bytes);

private:
    size_t word(uintptr_t address) const { return address / sizeof(uint64_t) - range_.begin / sizeof(uint64_t); }

    Range range_;
    std::vector<uint8_t> fetched_;  // 1 for each word that was
    size_t uncharged_ = 0;          // how many no copy was charged for
};

// The stack that kernel code runs on, up to the frame of its caller. There is no `host` while the host function itself
// runs. `left` is what its variables without a value hold.
void stack(Range own, HostStack *host, KeyedWords &left);
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
        "pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7; pxor %%xmm8, %%xmm8; pxor %%xmm9, %%xmm9;"     \
        "pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11; pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13;"                  \
        "pxor %%xmm14, %%xmm14; pxor %%xmm15, %%xmm15" ::                                                              \
            : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",       \
              "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory")
#elif defined(__aarch64__)
#define ASC_CLEAR_REGISTERS                                                                                            \
    asm volatile(                                                                                                      \
        "mov x19, 0; mov x20, 0; mov x21, 0; mov x22, 0; mov x23, 0; mov x24, 0; mov x25, 0; mov x26, 0;"              \
        "mov x27, 0; mov x28, 0;"                                                                                      \
        "movi v0.2d, 0; movi v1.2d, 0; movi v2.2d, 0; movi v3.2d, 0;"                                                  \
        "movi v4.2d, 0; movi v5.2d, 0; movi v6.2d, 0; movi v7.2d, 0;"                                                  \
        "movi v8.2d, 0; movi v9.2d, 0; movi v10.2d, 0; movi v11.2d, 0;"                                                \
        "movi v12.2d, 0; movi v13.2d, 0; movi v14.2d, 0; movi v15.2d, 0;"                                              \
        "movi v16.2d, 0; movi v17.2d, 0; movi v18.2d, 0; movi v19.2d, 0;"                                              \
        "movi v20.2d, 0; movi v21.2d, 0; movi v22.2d, 0; movi v23.2d, 0;"                                              \
        "movi v24.2d, 0; movi v25.2d, 0; movi v26.2d, 0; movi v27.2d, 0;"                                              \
        "movi v28.2d, 0; movi v29.2d, 0; movi v30.2d, 0; movi v31.2d, 0;" ::                                           \
            : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0", "v1", "v2", "v3", "v4",      \
              "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19",      \
              "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory")
#endif

}  // namespace sim::kernel_process::guard

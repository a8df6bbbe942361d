#include "guard.h"

#include <algorithm>
#include <cstring>

#include "kernel_process.h"
#include "pointers.h"

namespace sim::kernel_process::guard {
namespace {

Range image, copy, own, host;

// The function that accesses memory: its frame, its stack pointer, and a place in its code.
struct Caller { uintptr_t frame, stack_pointer, code; };

bool overlap(uintptr_t begin, uintptr_t end, uintptr_t address, size_t bytes) {
    return begin < address + bytes && address < end;
}

// True if the bytes hold something in a frame that the code of its function trusts.
bool is_trusted_word(uintptr_t frame, uintptr_t code, uintptr_t address, size_t bytes) {
    const TrustedWord *words = ring().trusted_words, *end = words + ring().num_trusted_words;
    const uint64_t where = code - image.begin;  // where the function goes on after a call, at most its end
    const TrustedWord *word = std::partition_point(words, end, [&](const auto &each) { return each.code < where; });
    if (word == words || where > word[-1].code_end) return false;
    for (const uint32_t function = word[-1].code; word != words && word[-1].code == function; --word) {
        const uintptr_t from = frame / word[-1].alignment * word[-1].alignment;
        if (overlap(from + word[-1].begin, from + word[-1].end, address, bytes)) return true;
    }
    return false;
}

// True if the bytes lie below the stack, or hold something that the code of a function on the stack trusts: its return
// address, its caller's frame pointer or another word of its frame. Every frame has a record of the address of the frame
// above it and of the place where its function goes on. The words of a function lie between the records of the frames
// next to its own.
bool is_trusted(const Caller &caller, uintptr_t address, size_t bytes) {
    if (address < caller.stack_pointer) return true;
    uintptr_t below = 0, frame = caller.frame, code = caller.code;
    for (uintptr_t record[2]; own.holds(frame, sizeof record) && below < address + bytes; code = record[1]) {
        std::memcpy(record, reinterpret_cast<const void *>(frame), sizeof record);
        const uintptr_t above = record[0] > frame ? record[0] : own.end;
        if (overlap(frame, frame + sizeof record, address, bytes)) return true;
        if (address < above && is_trusted_word(frame, code, address, bytes)) return true;
        below = frame;
        frame = above;
    }
    return false;
}

}  // namespace

void refuse(uint16_t why) {
    claim(why, 0);
    send();
    give_up(0);
}

void constants(Range given) { image = given; }
void arguments(Range given) { copy = given; }
void stack(Range of_core, Range of_host) {
    own = of_core;
    host = of_host;
}

Range own_stack() { return own; }

bool may_read(uintptr_t address, size_t bytes) {
    return own.holds(address, bytes) || image.holds(address, bytes) || copy.holds(address, bytes) ||
           host.holds(address, bytes);
}

[[gnu::noinline]] uintptr_t stack_pointer() {
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 2 * sizeof(uintptr_t);
}

static inline void read(const Caller &caller, uintptr_t address, size_t bytes) {
    pointers::flush();
    if (own.holds(address, bytes)) {
        if (is_trusted(caller, address, bytes)) refuse(OP_off_variables);
    } else if (!may_read(address, bytes) && !pointers::read(address, bytes)) {
        refuse();
    }
}

static inline void write(const Caller &caller, uintptr_t address, size_t bytes) {
    pointers::flush();
    if (own.holds(address, bytes)) {
        if (is_trusted(caller, address, bytes)) refuse(OP_off_variables);
    } else if (!pointers::write(address, bytes)) {
        refuse();
    }
}

}  // namespace sim::kernel_process::guard

using namespace sim::kernel_process;

// The instrumented function: our own frame begins with the address of its frame.
#define CALLER                                                                                                         \
    guard::Caller {                                                                                                    \
        *static_cast<const uintptr_t *>(__builtin_frame_address(0)),                                                   \
            reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()),                                                        \
            reinterpret_cast<uintptr_t>(__builtin_return_address(0))                                                   \
    }
#define ACCESS(bytes)                                                                                                  \
    ASC_EXPORT void __asan_load##bytes##_noabort(uintptr_t address) { guard::read(CALLER, address, bytes); }           \
    ASC_EXPORT void __asan_store##bytes##_noabort(uintptr_t address) { guard::write(CALLER, address, bytes); }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

ASC_EXPORT void __asan_loadN_noabort(uintptr_t address, size_t bytes) { guard::read(CALLER, address, bytes); }
ASC_EXPORT void __asan_storeN_noabort(uintptr_t address, size_t bytes) { guard::write(CALLER, address, bytes); }
ASC_EXPORT void __asan_handle_no_return(void) {}

// Copies and fills that the compiler emits as calls.
ASC_EXPORT void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memcpy(to, from, bytes);
}

ASC_EXPORT void *__wrap_memmove(void *to, const void *from, size_t bytes) {
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memmove(to, from, bytes);
}

ASC_EXPORT void *__wrap_memset(void *to, int value, size_t bytes) {
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memset(to, value, bytes);
}

ASC_EXPORT int __wrap_memcmp(const void *one, const void *other, size_t bytes) {
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(one), bytes);
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(other), bytes);
    return std::memcmp(one, other, bytes);
}

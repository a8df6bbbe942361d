#include "guard.h"

#include <cstring>

#include "kernel_process.h"
#include "pointers.h"

namespace sim::kernel_process::guard {
namespace {

Range image, copy, own, host;

// True if the bytes hold the return address of a kernel function or its caller's frame pointer. `frame` is the frame of
// the accessing function; every frame begins with the address of the one above it.
bool is_frame_record(uintptr_t frame, uintptr_t address, size_t bytes) {
    constexpr size_t record = 2 * sizeof(uintptr_t);
    while (own.holds(frame, record) && frame < address + bytes) {
        if (address < frame + record) return true;
        uintptr_t above;
        std::memcpy(&above, reinterpret_cast<const void *>(frame), sizeof above);
        if (above <= frame) break;
        frame = above;
    }
    return false;
}

}  // namespace

void refuse() {
    claim(OP_strayed, 0);
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

static inline void read(uintptr_t frame, uintptr_t address, size_t bytes) {
    pointers::flush();
    if (own.holds(address, bytes) ? is_frame_record(frame, address, bytes)
                                  : !may_read(address, bytes) && !pointers::read(address, bytes))
        refuse();
}

static inline void write(uintptr_t frame, uintptr_t address, size_t bytes) {
    pointers::flush();
    if (own.holds(address, bytes) ? is_frame_record(frame, address, bytes) : !pointers::write(address, bytes)) refuse();
}

}  // namespace sim::kernel_process::guard

using namespace sim::kernel_process;

// The frame of the instrumented function: our own frame begins with its address.
#define CALLER_FRAME (*static_cast<const uintptr_t *>(__builtin_frame_address(0)))
#define ACCESS(bytes)                                                                                                  \
    ASC_EXPORT void __asan_load##bytes##_noabort(uintptr_t address) { guard::read(CALLER_FRAME, address, bytes); }     \
    ASC_EXPORT void __asan_store##bytes##_noabort(uintptr_t address) { guard::write(CALLER_FRAME, address, bytes); }

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

ASC_EXPORT void __asan_loadN_noabort(uintptr_t address, size_t bytes) { guard::read(CALLER_FRAME, address, bytes); }
ASC_EXPORT void __asan_storeN_noabort(uintptr_t address, size_t bytes) { guard::write(CALLER_FRAME, address, bytes); }
ASC_EXPORT void __asan_handle_no_return(void) {}

// Copies and fills that the compiler emits as calls.
ASC_EXPORT void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
    if (bytes) guard::read(CALLER_FRAME, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER_FRAME, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memcpy(to, from, bytes);
}

ASC_EXPORT void *__wrap_memmove(void *to, const void *from, size_t bytes) {
    if (bytes) guard::read(CALLER_FRAME, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER_FRAME, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memmove(to, from, bytes);
}

ASC_EXPORT void *__wrap_memset(void *to, int value, size_t bytes) {
    if (bytes) guard::write(CALLER_FRAME, reinterpret_cast<uintptr_t>(to), bytes);
    return std::memset(to, value, bytes);
}

ASC_EXPORT int __wrap_memcmp(const void *one, const void *other, size_t bytes) {
    if (bytes) guard::read(CALLER_FRAME, reinterpret_cast<uintptr_t>(one), bytes);
    if (bytes) guard::read(CALLER_FRAME, reinterpret_cast<uintptr_t>(other), bytes);
    return std::memcmp(one, other, bytes);
}

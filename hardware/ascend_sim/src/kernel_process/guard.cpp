#include "guard.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "kernel_process.h"
#include "noise.h"
#include "pointers.h"

namespace sim::kernel_process::guard {
namespace {

Range image, copy, own;
HostStack *host;
KeyedWords *left;  // what variables without a value hold
constexpr size_t FREE_BYTES = 256;
// Words of the host function's stack that a core fetches for nothing: the arguments of most kernels.
constexpr size_t FREE_WORDS = 64;
// Bytes of variables without a value that are filled in the time of a basic block.
constexpr size_t FILLED_BYTES_PER_BLOCK = 64;
constexpr int PATTERN = 0xFE;
// An access to a variable of a function this far up the stack takes the guard as long as so many basic blocks per frame:
// a deep recursion is to end at the limit of these.
constexpr uint64_t NEAR_FRAMES = 8, BLOCKS_PER_FRAME = 4;

constexpr size_t RECORD_BYTES = 2 * sizeof(uintptr_t);

// The function that accesses memory: its frame and its stack pointer.
struct Caller { uintptr_t frame, stack_pointer; };

// For what runs before all other registers are saved.
#define GENERAL_REGISTERS __attribute__((target("general-regs-only")))

bool overlap(uintptr_t begin, uintptr_t end, uintptr_t address, size_t bytes) {
    return begin < address + bytes && address < end;
}

// True if the bytes lie below the stack, or in the record of a frame: the address of the frame above it, and the place
// where its function goes on.
GENERAL_REGISTERS bool is_trusted(const Caller &caller, uintptr_t address, size_t bytes) {
    if (address < caller.stack_pointer) return true;
    uintptr_t frame = caller.frame;
    for (uint64_t frames = 0; own.holds(frame, RECORD_BYTES) && frame < address + bytes;) {
        if (++frames > NEAR_FRAMES) progress.blocks += BLOCKS_PER_FRAME;
        if (overlap(frame, frame + RECORD_BYTES, address, bytes)) return true;
        const uintptr_t above = *reinterpret_cast<const uintptr_t *>(frame);
        frame = above > frame ? above : own.end;
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
void stack(Range of_core, HostStack *of_host, KeyedWords &words) {
    own = of_core;
    host = of_host;
    left = &words;
}

GENERAL_REGISTERS bool HostStack::has_fetched(uintptr_t address, size_t bytes) const {
    const uint8_t *const words = fetched_.data();
    bool all = true;
    for (size_t i = word(address); i <= word(address + bytes - 1); ++i) all = all && words[i];
    return all;
}

size_t HostStack::fetch(uintptr_t address, size_t bytes) {
    size_t words = 0;
    for (size_t i = word(address); i <= word(address + bytes - 1); ++i) words += !std::exchange(fetched_[i], 1);
    if (bytes > FREE_BYTES) words = std::min(words, FREE_BYTES / sizeof(uint64_t));
    uncharged_ += words;
    return std::min(words, uncharged_ - std::min(uncharged_, FREE_WORDS));
}

Range own_stack() { return own; }

bool may_read(uintptr_t address, size_t bytes) {
    return own.holds(address, bytes) || image.holds(address, bytes) || copy.holds(address, bytes) ||
           (host && host->holds(address, bytes));
}

[[gnu::noinline]] uintptr_t stack_pointer() { return reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()); }

// Most accesses: to a variable on the stack or, if they are reads, to what a core may read and nobody writes.
GENERAL_REGISTERS static inline bool is_plain(const Caller &caller, uintptr_t address, size_t bytes, bool is_store) {
    if (pointers::unsent.bytes) return false;
    if (own.holds(address, bytes)) return !is_trusted(caller, address, bytes);
    if (is_store) return false;
    return image.holds(address, bytes) || copy.holds(address, bytes) ||
           (host && host->holds(address, bytes) && host->has_fetched(address, bytes));
}

static inline void check(const Caller &caller, uintptr_t address, size_t bytes, bool is_store) {
    pointers::flush();
    if (is_plain(caller, address, bytes, is_store)) return;
    if (own.holds(address, bytes)) refuse(OP_off_variables);
    if (!is_store && host && host->holds(address, bytes)) {
        progress.cycles += host->fetch(address, bytes);
        return;
    }
    if (!(is_store ? pointers::write(address, bytes) : pointers::read(address, bytes))) refuse();
    forget();
}

// A copy of a large object takes time and counts as work: a word for each cycle, beside what is free in a single copy.
// Objects of the API are smaller than that, and larger ones are copied by a call (runtime.py).
static inline void charge(size_t bytes, size_t free = FREE_BYTES) {
    if (bytes <= free) return;
    progress.cycles += (bytes - free) / sizeof(uint64_t);
    progress.blocks += (bytes - free) / FREE_BYTES;
}

// Fills a variable without a value, which takes no time but counts as work. A kernel must not know its bytes: it could
// take them for zeros that cost nothing, and count with how many were filled. Nor may they depend on what other cores
// filled, which would tell it that.
static void *leave_anything(void *to, size_t bytes) {
    progress.blocks += bytes / FILLED_BYTES_PER_BLOCK;
    uint64_t state = left->next();
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = next_word(state);
        std::memcpy(static_cast<char *>(to) + at, &word, std::min(sizeof word, bytes - at));
    }
    return to;
}

// True for the bytes that a variable on the stack has before anybody writes it: the compiler fills it with them.
static inline bool is_initial(const void *to, int value, size_t bytes) {
    return value == PATTERN && own.holds(reinterpret_cast<uintptr_t>(to), bytes);
}

}  // namespace sim::kernel_process::guard

using namespace sim::kernel_process;

// The calling function: our own frame begins with the address of its frame.
#define CALLER                                                                                                         \
    guard::Caller {                                                                                                    \
        *static_cast<const uintptr_t *>(__builtin_frame_address(0)),                                                   \
            reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa())                                                         \
    }

// Copies and fills that the compiler emits as calls.
ASC_EXPORT void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
    guard::charge(bytes);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(from), bytes, false);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(to), bytes, true);
    return std::memcpy(to, from, bytes);
}

ASC_EXPORT void *__wrap_memmove(void *to, const void *from, size_t bytes) {
    guard::charge(bytes);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(from), bytes, false);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(to), bytes, true);
    return std::memmove(to, from, bytes);
}

ASC_EXPORT void *__wrap_memset(void *to, int value, size_t bytes) {
    const bool initial = guard::is_initial(to, value, bytes);
    if (!initial) guard::charge(bytes);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(to), bytes, true);
    return initial ? guard::leave_anything(to, bytes) : std::memset(to, value, bytes);
}

ASC_EXPORT int __wrap_memcmp(const void *one, const void *other, size_t bytes) {
    guard::charge(bytes + sizeof(uint64_t) - 1, 0);  // comparing computes, unlike copying
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(one), bytes, false);
    if (bytes) guard::check(CALLER, reinterpret_cast<uintptr_t>(other), bytes, false);
    return std::memcmp(one, other, bytes);
}

// The checks that are inserted into kernel code (assembly/guards.py; entries.cpp). `frame` is that of the entry: the
// frame of the function that it was called by, and the place where this goes on.
extern "C" GENERAL_REGISTERS bool asc_is_plain(uintptr_t address, size_t bytes, const uintptr_t *frame, bool is_store) {
    return guard::is_plain({frame[0], reinterpret_cast<uintptr_t>(frame + 2)}, address, bytes, is_store);
}

extern "C" void asc_check(uintptr_t address, size_t bytes, const uintptr_t *frame, bool is_store) {
    const guard::Caller caller = {frame[0], reinterpret_cast<uintptr_t>(frame + 2)};
    guard::check(caller, address, bytes, is_store);
}

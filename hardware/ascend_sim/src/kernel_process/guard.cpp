#include "guard.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernel_process.h"
#include "noise.h"
#include "pointers.h"

namespace sim::kernel_process::guard {
namespace {

Range image, copy, own, host;
uint64_t turn;     // counts when cores begin or go on
KeyedWords *left;  // what variables without a value hold
constexpr size_t FREE_BYTES = 256;
constexpr int PATTERN = 0xFE;
// An access to a variable of a function this far up the stack takes the guard as long as so many basic blocks per frame:
// a deep recursion is to end at the limit of these.
constexpr uint64_t NEAR_FRAMES = 8, BLOCKS_PER_FRAME = 4;

// The function that accesses memory: its frame, its stack pointer, and a place in its code.
struct Caller { uintptr_t frame, stack_pointer, code; };

bool overlap(uintptr_t begin, uintptr_t end, uintptr_t address, size_t bytes) {
    return begin < address + bytes && address < end;
}

// The trusted words of the function that goes on at `code` after a call: at most at its end.
struct FunctionWords {
    uintptr_t code = 0;
    uint64_t turn = 0;
    const TrustedWord *begin = nullptr, *end = nullptr;
};

FunctionWords find_words(uintptr_t code) {
    const TrustedWord *words = ring().trusted_words, *all = words + ring().num_trusted_words;
    const uint64_t where = code - image.begin;
    const TrustedWord *end = std::partition_point(words, all, [&](const auto &word) { return word.code < where; });
    if (end == words || where > end[-1].code_end) return {code, turn};
    const TrustedWord *begin = end - 1;
    while (begin != words && begin[-1].code == begin->code) --begin;
    return {code, turn, begin, end};
}

// True if the bytes hold something in a frame that the code of its function trusts.
bool is_trusted_word(uintptr_t frame, uintptr_t code, uintptr_t address, size_t bytes) {
    static FunctionWords found[4096];  // by the last bits of `code`
    FunctionWords &words = found[code % std::size(found)];
    // Of this turn: what finding takes of the stack must not tell what other cores have done.
    if (words.code != code || words.turn != turn) words = find_words(code);
    return std::any_of(words.begin, words.end, [&](const TrustedWord &word) {
        const uintptr_t from = frame & -uintptr_t{word.alignment};
        return overlap(from + word.begin, from + word.end, address, bytes);
    });
}

// True if the bytes lie below the stack, or hold something that the code of a function on the stack trusts: its return
// address, its caller's frame pointer or another word of its frame. Every frame has a record of the address of the frame
// above it and of the place where its function goes on. The words of a function lie between the records of the frames
// next to its own.
bool is_trusted(const Caller &caller, uintptr_t address, size_t bytes) {
    if (address < caller.stack_pointer) return true;
    uintptr_t below = 0, frame = caller.frame, code = caller.code;
    uint64_t frames = 0;
    for (uintptr_t record[2]; own.holds(frame, sizeof record) && below < address + bytes; code = record[1]) {
        if (++frames > NEAR_FRAMES) progress.blocks += BLOCKS_PER_FRAME;
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
void stack(Range of_core, Range of_host, KeyedWords &words) {
    own = of_core;
    host = of_host;
    left = &words;
    ++turn;
}

Range own_stack() { return own; }

bool may_read(uintptr_t address, size_t bytes) {
    return own.holds(address, bytes) || image.holds(address, bytes) || copy.holds(address, bytes) ||
           host.holds(address, bytes);
}

[[gnu::noinline]] uintptr_t stack_pointer() { return reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()); }

static inline void flush(const Caller &caller) {
    if (pointers::places.empty()) return;
    pointers::flush(caller.frame);
    forget();
}

// `operand` tells the accesses of one call apart.
static inline void read(const Caller &caller, uintptr_t address, size_t bytes, uintptr_t operand = 0) {
    flush(caller);
    if (own.holds(address, bytes)) {
        if (is_trusted(caller, address, bytes)) refuse(OP_off_variables);
    } else if (!may_read(address, bytes)) {
        if (!pointers::read(address, bytes, {caller.frame, caller.code + operand})) refuse();
        forget();
    }
}

static inline void write(const Caller &caller, uintptr_t address, size_t bytes, uintptr_t operand = 0) {
    flush(caller);
    if (own.holds(address, bytes)) {
        if (is_trusted(caller, address, bytes)) refuse(OP_off_variables);
    } else {
        if (!pointers::write(address, bytes, {caller.frame, caller.code + operand})) refuse();
        forget();
    }
}

// A copy of a large object takes time and counts as work: a word for each cycle, beside what is free in a single copy.
// Objects of the API are smaller than that, and larger ones are copied by a call (runtime.py).
static inline void charge(size_t bytes, size_t free = FREE_BYTES) {
    if (bytes <= free) return;
    progress.cycles += (bytes - free) / sizeof(uint64_t);
    progress.blocks += (bytes - free) / FREE_BYTES;
}

// Fills a variable without a value. A kernel must not know its bytes: it could take them for zeros that cost nothing, and
// count with how many were filled. Nor may they depend on what other cores filled, which would tell it that.
static void *leave_anything(void *to, size_t bytes) {
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
    guard::charge(bytes);
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes, 1);
    return std::memcpy(to, from, bytes);
}

ASC_EXPORT void *__wrap_memmove(void *to, const void *from, size_t bytes) {
    guard::charge(bytes);
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(from), bytes);
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes, 1);
    return std::memmove(to, from, bytes);
}

ASC_EXPORT void *__wrap_memset(void *to, int value, size_t bytes) {
    const bool initial = guard::is_initial(to, value, bytes);
    if (!initial) guard::charge(bytes);
    if (bytes) guard::write(CALLER, reinterpret_cast<uintptr_t>(to), bytes);
    return initial ? guard::leave_anything(to, bytes) : std::memset(to, value, bytes);
}

ASC_EXPORT int __wrap_memcmp(const void *one, const void *other, size_t bytes) {
    guard::charge(bytes + sizeof(uint64_t) - 1, 0);  // comparing computes, unlike copying
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(one), bytes);
    if (bytes) guard::read(CALLER, reinterpret_cast<uintptr_t>(other), bytes, 1);
    return std::memcmp(one, other, bytes);
}

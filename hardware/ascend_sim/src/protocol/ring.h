// The ring that carries records from a kernel process to the device process, and the arguments of the call.
//
// One producer (the kernel process, hostile), one consumer (the device process, trusted), in memory that both map. The
// device trusts nothing in it: it copies a record before it reads it, and keeps its own positions.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <new>

#include "../../include/abi.h"
#include "../../../host/include/kernel_gym.h"
#include "plain_code.h"

namespace sim {

#define ASC_FITS(type) static_assert(sizeof(type) <= ASC_PAYLOAD, #type " does not fit into a record");
#include "calls.inc"
#undef ASC_FITS

// Operations that are not in abi.h: messages of the kernel process about itself.
enum : uint16_t { OP_off_variables = 0xfffc, OP_strayed, OP_budget_spent, OP_gave_up };

struct Record {
    uint16_t op;
    uint16_t reserved;
    int32_t line;
    PlainCode code;  // since the last record
    alignas(8) uint8_t payload[ASC_PAYLOAD];
    uint64_t reserved3;
};
static_assert(sizeof(Record) == 192 && std::is_trivially_copyable_v<Record>);

// The arguments of one call of kernel_launch. The device writes them before it starts the kernel process. They are the
// same for a computing run and a timing-only run.
struct CallArguments {
    enum { MAX_TENSORS = 4096, MAX_SCALARS = 1024 };
    uint32_t num_inputs, num_outputs, num_ints, num_floats;
    uint32_t cpu_seconds;
    uint32_t loops;  // 0: every scalar access is a record of its own
    uint64_t budget;
    uint64_t platform[5];  // answers of asc_platform
    uint64_t workspace_address, workspace_bytes;
    KernelTensor tensors[MAX_TENSORS];  // inputs, then outputs
    int64_t ints[MAX_SCALARS];
    double floats[MAX_SCALARS];
};

struct NoiseKey { uint64_t low, high; };

struct Ring {
    enum : uint64_t { SLOTS = 4096, COVERED_BYTES = 4 << 20, WORDS = 1 << 16 };

    alignas(64) std::atomic<uint64_t> head;           // next record that the kernel writes
    alignas(64) std::atomic<uint64_t> tail;           // next record that the device reads
    alignas(64) std::atomic<uint64_t> words_tail;     // next word that the device reads
    alignas(64) std::atomic<uint32_t> device_sleeps;  // 1 while the device waits for records
    alignas(64) std::atomic<uint32_t> kernel_sleeps;  // 1 while the kernel waits for room
    alignas(64) std::atomic<uint32_t> answers;        // number of answered queries
    std::atomic<uint32_t> kernel_asks;                // 1 while the kernel sleeps until it is answered
    asc_block answer;
    std::atomic<uint32_t> stop;  // the device has ended the run
    char error[160];             // why the kernel process failed before the call
    CallArguments call;
    uint64_t covered[COVERED_BYTES / 64];    // one bit per byte of the kernel's code: a basic block started there
    uint32_t cycles[COVERED_BYTES];          // what a basic block that started there costs
    uint64_t functions[COVERED_BYTES / 64];  // one bit per byte of the kernel's code: a function starts there
    NoiseKey key;                            // of what variables without a value hold
    alignas(64) Record records[SLOTS];
    uint64_t words[WORDS];  // what loops of scalar accesses write
};

// Polls before going to sleep: a few microseconds, so that waiting does not load a busy machine. A poll takes much
// longer on x86-64, where a pause is a hundred cycles.
#if defined(__x86_64__)
constexpr int kSpins = 150;
#else
constexpr int kSpins = 4000;
#endif

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Sleeps while *word == value. Wakes up now and then, so that a lost partner is noticed.
inline void sleep_while(std::atomic<uint32_t> *word, uint32_t value, long milliseconds = 50) {
    const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

inline void wake(std::atomic<uint32_t> *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

}  // namespace sim

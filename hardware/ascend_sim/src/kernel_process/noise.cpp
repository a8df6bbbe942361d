#include "noise.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "random_places.h"

namespace sim::kernel_process {
namespace {

// More than any function of this process takes that kernel code calls, and more than the C library takes to print.
constexpr size_t FORGOTTEN = 4096, PRINTED = 32768;

int file = -1;
const void *noise;

}  // namespace

int make_noise() {
    const int made = memfd_create("noise", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0 || ftruncate(made, NOISE_BYTES) != 0) return -1;
    void *memory = mmap(nullptr, NOISE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    if (memory == MAP_FAILED) return -1;
    std::mt19937_64 random;
    for (size_t at = 0; at < NOISE_BYTES; at += sizeof(uint64_t)) {
        const uint64_t word = random();
        std::memcpy(static_cast<char *>(memory) + at, &word, sizeof word);
    }
    munmap(memory, NOISE_BYTES);
    return fcntl(made, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0 ? made : -1;
}

bool use_noise(int descriptor) {
    file = descriptor;
    void *memory = map_noise();
    noise = memory;
    return memory != MAP_FAILED;
}

void *map_noise() { return map_anywhere(NOISE_BYTES, PROT_READ | PROT_WRITE, file); }

template <size_t bytes>
static inline void overwrite() {
    char below[bytes];
    std::memcpy(below, noise, sizeof below);
    asm volatile("" ::"r"(below) : "memory");  // it is not left out
}

[[gnu::noinline]] void forget() { overwrite<FORGOTTEN>(); }
[[gnu::noinline]] void forget_printing() { overwrite<PRINTED>(); }

}  // namespace sim::kernel_process

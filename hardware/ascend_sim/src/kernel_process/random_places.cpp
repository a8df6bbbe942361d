#include "random_places.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <random>

namespace sim::kernel_process {
namespace {

// Below the tensors' handles, and within the 39 bits that every supported machine has for addresses.
constexpr uint64_t FIRST = 1ull << 34, END = 1ull << 38, STEP = 1 << 16;

uint64_t seed() {
    uint64_t random = 0;
    return getrandom(&random, sizeof random, 0) == sizeof random ? random : 0;
}

void *random_address() {
    static std::mt19937_64 random(seed());
    return reinterpret_cast<void *>(FIRST + random() % ((END - FIRST) / STEP) * STEP);
}

}  // namespace

// The kernel maps elsewhere if something is there already.
void *map_anywhere(size_t bytes, int protection, int file) {
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
    return mmap(random_address(), bytes, protection, kind | MAP_NORESERVE, file, 0);
}

void *move_anywhere(void *memory, size_t bytes) {
    void *place = map_anywhere(bytes, PROT_NONE);
    return place == MAP_FAILED ? place : mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
}

}  // namespace sim::kernel_process

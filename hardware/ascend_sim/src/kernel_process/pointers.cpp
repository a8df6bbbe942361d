#include "pointers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "kernel_process.h"

namespace sim::kernel_process::pointers {
namespace {

constexpr size_t PAGES = 64;
constexpr uint64_t TENSORS = 64;

uintptr_t pages[PAGES];
size_t mapped;
size_t unsent_bytes;

// The device makes up values by element type where there is no data; those of integers are 0, which is no harm to either.
uint32_t dtype_of(size_t bytes) { return bytes == 1 ? ASC_U8 : bytes == 2 ? ASC_U16 : bytes == 4 ? ASC_U32 : ASC_U64; }

bool is_global(uintptr_t address, size_t bytes) {
    const bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && address % bytes == 0;
    return whole && in_core() && address - ASC_GM_BASE < TENSORS * ASC_GM_STRIDE;
}

void map(uintptr_t address) {
    const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), page = address / size * size;
    for (size_t i = 0; i < mapped; ++i)
        if (pages[i] == page) return;
    if (mapped == PAGES) munmap(reinterpret_cast<void *>(pages[--mapped]), size);
    void *place = mmap(reinterpret_cast<void *>(page), size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != reinterpret_cast<void *>(page)) _exit(104);
    pages[mapped++] = page;
}

}  // namespace

uintptr_t unsent;

bool read(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    flush();
    map(address);
    const uint64_t bits = asc_get_global(dtype_of(bytes), address, current_line());
    std::memcpy(reinterpret_cast<void *>(address), &bits, bytes);
    return true;
}

bool write(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    flush();
    map(address);
    unsent = address;
    unsent_bytes = bytes;
    return true;
}

void send_unsent() {
    const uintptr_t address = unsent;
    unsent = 0;
    uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void *>(address), unsent_bytes);
    asc_set_global(dtype_of(unsent_bytes), address, bits, current_line());
}

}  // namespace sim::kernel_process::pointers

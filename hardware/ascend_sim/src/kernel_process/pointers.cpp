#include "pointers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel_process.h"

namespace sim::kernel_process::pointers {

Store unsent;

namespace {

constexpr size_t PAGES = 64;
constexpr uint64_t TENSORS = 64;

std::vector<uintptr_t> pages;  // in the order of their last use

uint64_t bits_at(uintptr_t address, size_t bytes) {
    const auto as = [&](auto bits) {  // of a size that is known here: this is what takes time
        std::memcpy(&bits, reinterpret_cast<const void *>(address), sizeof bits);
        return uint64_t{bits};
    };
    return bytes == 4 ? as(uint32_t{}) : bytes == 8 ? as(uint64_t{}) : bytes == 2 ? as(uint16_t{}) : as(uint8_t{});
}

// The device makes up values by element type where there is no data; those of integers are 0, which is no harm to either.
uint32_t dtype_of(size_t bytes) { return bytes == 1 ? ASC_U8 : bytes == 2 ? ASC_U16 : bytes == 4 ? ASC_U32 : ASC_U64; }

bool is_global(uintptr_t address, size_t bytes) {
    const bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && address % bytes == 0;
    return whole && in_core() && address - ASC_GM_BASE < TENSORS * ASC_GM_STRIDE;
}

void map(uintptr_t address) {
    const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), page = address / size * size;
    const auto found = std::find(pages.rbegin(), pages.rend(), page);  // those used last are looked at first
    if (found != pages.rend()) {
        std::rotate(found.base() - 1, found.base(), pages.end());
        return;
    }
    if (pages.size() >= PAGES) {
        munmap(reinterpret_cast<void *>(pages.front()), size);
        pages.erase(pages.begin());
    }
    void *place = mmap(reinterpret_cast<void *>(page), size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != reinterpret_cast<void *>(page)) _exit(104);
    pages.push_back(page);
}

}  // namespace

bool read(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    const uint64_t bits = front::get_global(dtype_of(bytes), address, current_line());
    map(address);
    std::memcpy(reinterpret_cast<void *>(address), &bits, bytes);
    return true;
}

bool write(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    map(address);
    unsent = {address, bytes};
    return true;
}

void send() {
    const Store store = unsent;
    unsent = {};
    front::set_global(dtype_of(store.bytes), store.address, bits_at(store.address, store.bytes), current_line());
}

}  // namespace sim::kernel_process::pointers

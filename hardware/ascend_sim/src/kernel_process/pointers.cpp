#include "pointers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel_process.h"

namespace sim::kernel_process::pointers {

uintptr_t unsent;
size_t watched;

namespace {

constexpr size_t PAGES = 64, PLACES = 16;  // fewer, so that a place that was read lies in a mapped page
constexpr uint64_t TENSORS = 64;

uintptr_t pages[PAGES];  // in the order of their last use
size_t mapped;
size_t unsent_bytes;

struct Place {
    uintptr_t address;
    size_t bytes;
    uint64_t bits;  // as the device has them
};
Place places[PLACES];  // read last, the latest at the end

uint64_t bits_at(uintptr_t address, size_t bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const void *>(address), bytes);
    return bits;
}

void forget(uintptr_t address, size_t bytes) {
    const auto meets = [&](const Place &place) {
        return place.address < address + bytes && address < place.address + place.bytes;
    };
    watched = static_cast<size_t>(std::remove_if(places, places + watched, meets) - places);
}

void watch(Place place) {
    if (watched == PLACES) std::copy(places + 1, places + watched--, places);
    places[watched++] = place;
}

// The device makes up values by element type where there is no data; those of integers are 0, which is no harm to either.
uint32_t dtype_of(size_t bytes) { return bytes == 1 ? ASC_U8 : bytes == 2 ? ASC_U16 : bytes == 4 ? ASC_U32 : ASC_U64; }

bool is_global(uintptr_t address, size_t bytes) {
    const bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && address % bytes == 0;
    return whole && in_core() && address - ASC_GM_BASE < TENSORS * ASC_GM_STRIDE;
}

void map(uintptr_t address) {
    const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), page = address / size * size;
    for (size_t i = mapped; i-- > 0;) {  // those used last are looked at first
        if (pages[i] != page) continue;
        std::rotate(pages + i, pages + i + 1, pages + mapped);
        return;
    }
    if (mapped == PAGES) {
        forget(pages[0], size);
        munmap(reinterpret_cast<void *>(pages[0]), size);
        std::copy(pages + 1, pages + mapped--, pages);
    }
    void *place = mmap(reinterpret_cast<void *>(page), size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != reinterpret_cast<void *>(page)) _exit(104);
    pages[mapped++] = page;
}

}  // namespace

bool read(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    flush();
    map(address);
    forget(address, bytes);
    const uint64_t bits = asc_get_global(dtype_of(bytes), address, current_line());
    std::memcpy(reinterpret_cast<void *>(address), &bits, bytes);
    watch({address, bytes, bits_at(address, bytes)});
    return true;
}

bool write(uintptr_t address, size_t bytes) {
    if (!is_global(address, bytes)) return false;
    flush();
    map(address);
    forget(address, bytes);
    unsent = address;
    unsent_bytes = bytes;
    return true;
}

void send_unsent() {
    const uintptr_t address = unsent;
    unsent = 0;
    asc_set_global(dtype_of(unsent_bytes), address, bits_at(address, unsent_bytes), current_line());
}

void send_changed() {
    for (size_t i = 0; i < watched; ++i) {
        Place &place = places[i];
        const uint64_t bits = bits_at(place.address, place.bytes);
        if (bits == place.bits) continue;
        place.bits = bits;
        asc_set_global(dtype_of(place.bytes), place.address, bits, current_line());
    }
}

void forget() { watched = 0; }

}  // namespace sim::kernel_process::pointers

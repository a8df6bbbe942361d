#include "pointers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel_process.h"

namespace sim::kernel_process::pointers {

std::vector<Place> places;

namespace {

constexpr size_t PAGES = 64;  // more only while they hold places
constexpr uint64_t TENSORS = 64;

std::vector<uintptr_t> pages;  // in the order of their last use

uint64_t bits_at(uintptr_t address, size_t bytes) {
    const auto as = [&](auto bits) {  // of a size that is known here: this is what takes time
        std::memcpy(&bits, reinterpret_cast<const void *>(address), sizeof bits);
        return uint64_t{bits};
    };
    return bytes == 4 ? as(uint32_t{}) : bytes == 8 ? as(uint64_t{}) : bytes == 2 ? as(uint16_t{}) : as(uint8_t{});
}

// The device has these bytes.
void known(uintptr_t address, size_t bytes) {
    for (Place &place : places) {
        const uintptr_t begin = std::max(address, place.address);
        const uintptr_t end = std::min(address + bytes, place.address + place.bytes);
        if (begin >= end) continue;
        std::memcpy(reinterpret_cast<char *>(&place.bits) + (begin - place.address),
                    reinterpret_cast<const void *>(begin), end - begin);
        if (end - begin == place.bytes) place.unsent = false;
    }
}

// If the function has passed this check before, its code does not run straight on from there.
void watch(const Place &place) {
    const auto same_frame = [&](const Place &other) { return other.check.frame == place.check.frame; };
    const auto same = [&](const Place &other) { return same_frame(other) && other.check.code == place.check.code; };
    const auto last = std::find_if(places.rbegin(), places.rend(), same).base();
    if (last != places.begin()) places.erase(std::find_if(places.begin(), last, same_frame), last);
    places.push_back(place);
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
        const auto unused = std::find_if(pages.begin(), pages.end(), [&](uintptr_t each) {
            return std::none_of(places.begin(), places.end(),
                                [&](const Place &place) { return place.address / size * size == each; });
        });
        if (unused != pages.end()) {
            munmap(reinterpret_cast<void *>(*unused), size);
            pages.erase(unused);
        }
    }
    void *place = mmap(reinterpret_cast<void *>(page), size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != reinterpret_cast<void *>(page)) _exit(104);
    pages.push_back(page);
}

void hold(uintptr_t address, size_t bytes, uint64_t bits) {
    map(address);
    std::memcpy(reinterpret_cast<void *>(address), &bits, bytes);
    known(address, bytes);
}

}  // namespace

bool read(uintptr_t address, size_t bytes, Check check) {
    if (!is_global(address, bytes)) return false;
    const uint64_t bits = front::get_global(dtype_of(bytes), address, current_line());
    hold(address, bytes, bits);
    watch({address, bytes, bits, false, check});
    return true;
}

bool write(uintptr_t address, size_t bytes, Check check) {
    if (!is_global(address, bytes)) return false;
    const uint64_t bits = peek_global(dtype_of(bytes), address);
    hold(address, bytes, bits);
    watch({address, bytes, bits, true, check});
    return true;
}

void send_changed() {
    for (size_t i = 0; i < places.size(); ++i) {
        Place &place = places[i];
        const uint64_t bits = bits_at(place.address, place.bytes);
        if (bits == place.bits && !place.unsent) continue;
        known(place.address, place.bytes);
        front::set_global(dtype_of(place.bytes), place.address, bits, current_line());
    }
}

}  // namespace sim::kernel_process::pointers

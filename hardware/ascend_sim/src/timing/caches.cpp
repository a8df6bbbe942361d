#include "caches.h"

#include <algorithm>

namespace sim {

namespace {

// The blocks of a sector that its bytes [from, to) are in.
uint16_t blocks_of(uint64_t from, uint64_t to) {
    const uint64_t first = from / L2::BLOCK, end = (to + L2::BLOCK - 1) / L2::BLOCK;
    return static_cast<uint16_t>((1u << end) - (1u << first));
}

}  // namespace

void L2::begin_launch(uint64_t window) {
    window_ = static_cast<uint32_t>(window / SECTOR);
    begin_phase();
}

void L2::begin_phase() {
    ++phase_;
    for_others_.clear();
}

uint32_t L2::clock(const Filler &filler) const {
    return static_cast<uint32_t>(carried_ + filler.filled * filler.beside / SECTOR);
}

// The address that a tensor would have if its index were its number.
uint64_t L2::home(uint64_t address) const {
    const uint64_t tensor = (address - ASC_GM_BASE) / ASC_GM_STRIDE;
    if (address < ASC_GM_BASE || tensor >= numbers_.size()) return address;
    return ASC_GM_BASE + numbers_[tensor] * ASC_GM_STRIDE + (address - ASC_GM_BASE) % ASC_GM_STRIDE;
}

L2::Sector &L2::sector(uint64_t number) {
    if (number / PAGE != last_number_) {
        std::unique_ptr<Page> &page = pages_[number / PAGE];
        if (!page) page = std::make_unique<Page>();
        last_number_ = number / PAGE;
        last_page_ = page.get();
    }
    return (*last_page_)[number % PAGE];
}

void L2::fill(Filler &filler, uint32_t bytes, bool write, Touch &touch) {
    filler.filled += bytes;
    if (write) filler.dirty += bytes;
    if (carried_ + filler.filled * filler.beside / SECTOR > capacity_)  // older data is evicted
        touch.written_back += static_cast<uint64_t>(bytes) * filler.dirty / filler.filled;
}

// Records that a core begins to read a sector that another core read before it in this phase.
void L2::meet(const Filler &filler, Sector &at, uint32_t bytes) {
    const auto reached = static_cast<uint32_t>(filler.read / SECTOR);
    const uint32_t apart = reached > at.reached_at ? reached - at.reached_at : at.reached_at - reached;
    at.close = apart < window_;
    if (at.readers == 255 || at.fetched_by == filler.core) return;
    if (at.readers == 0) at.fetched_by = NOBODY;  // it was written, not fetched
    if (at.fetched_by != NOBODY) {
        if (at.fetched_by >= for_others_.size()) for_others_.resize(at.fetched_by + 1u);
        const uint32_t part = bytes / (at.readers * (at.readers + 1u));
        for_others_[at.fetched_by].bytes += part;
        if (filler.now > at.fetched_at + told_) for_others_[at.fetched_by].late += part;
    }
    ++at.readers;
}

void L2::touch_sector(Filler &filler, Sector &at, const Part &part, bool write, bool bypass, Touch &touch) {
    const uint32_t bytes = part.bytes;
    const auto age = static_cast<int64_t>(clock(filler)) - at.filled_at;
    const bool resident = at.phase && age <= static_cast<int64_t>(capacity_);
    if (!resident) at.blocks = 0;
    const bool begins = !at.blocks || at.core != filler.core || at.phase != phase_;  // to use the sector
    const bool hit = resident && (part.needed & ~at.blocks) == 0;
    (hit ? touch.hit : touch.miss) += bytes;
    if ((hit || bypass) && !write && at.phase == phase_) {
        if (at.core != filler.core) {
            meet(filler, at, hit ? bytes : 0);
            if (hit && at.fetched_by != filler.core && at.fetched_by != NOBODY) touch.taken += bytes;
            at.core = static_cast<uint16_t>(filler.core);
        }
        if (at.readers > 1 && at.close) ++touch.contended;
        else if (at.readers > 1 && bytes < SECTOR) ++touch.shared;
    }
    if (bypass && (write || at.phase == phase_)) return;
    if (bypass) {  // not kept, but cores that read the sector together are in each other's way
        at.fetched_by = NOBODY;
        at.readers = 1;
    } else if (!hit) {
        fill(filler, bytes, write, touch);
        at.blocks |= part.moved;
        at.fetched_by = static_cast<uint16_t>(filler.core);
        at.fetched_at = filler.now;
        at.readers = !write;
        at.close = false;
    } else if (at.phase != phase_) {
        at.fetched_by = NOBODY;
        if (!write && !at.readers) at.readers = 1;
    }
    if (!bypass) at.filled_at = clock(filler);
    if (begins) at.reached_at = static_cast<uint32_t>(filler.read / SECTOR);
    at.phase = phase_;
    at.core = static_cast<uint16_t>(filler.core);
}

void L2::burst(Filler &filler, uint64_t address, uint64_t bytes, bool write, bool bypass, Touch &touch) {
    if (bytes == 0) return;
    address = home(address);
    if (!write) filler.read += bytes;
    const uint64_t first = address / SECTOR, last = (address + bytes - 1) / SECTOR;
    const uint64_t needed = (bytes + SECTOR - 1) / SECTOR, requests = last - first + 1;
    touch.requests += static_cast<uint32_t>(requests);
    touch.extra += static_cast<uint32_t>(requests - needed);
    const uint64_t unit = !write && bytes < SECTOR ? LINE : BLOCK;  // short reads move whole lines
    for (uint64_t number = first; number <= last; ++number) {
        const uint64_t from = std::max(address, number * SECTOR) % SECTOR;
        const uint64_t to = std::min(address + bytes, (number + 1) * SECTOR) - number * SECTOR;
        const uint64_t begin = from / unit * unit, end = (to + unit - 1) / unit * unit;
        const Part part{blocks_of(from, to), blocks_of(begin, end), static_cast<uint32_t>(end - begin)};
        touch_sector(filler, sector(number), part, write, bypass, touch);
    }
}

Ticks Way::book(Ticks now, Ticks work) {
    if (now >= end_) {
        gap_begin_ = end_;
        gap_end_ = now;
        return end_ = now + work;
    }
    const Ticks begin = std::max(now, gap_begin_);
    const Ticks room = std::max<Ticks>(0, gap_end_ - begin);
    if (work <= room) return gap_begin_ = begin + work;
    gap_begin_ = gap_end_;
    return end_ += work - room;
}

DataCache::DataCache(uint64_t bytes) : sets_(std::max<uint64_t>(1, bytes / (LINE * WAYS))) {
    for (auto &set : sets_) set.fill(~0ull);
}

bool DataCache::hit(uint64_t address) {
    const uint64_t line = address / LINE;
    auto &set = sets_[line % sets_.size()];
    auto found = std::find(set.begin(), set.end(), line);
    const bool hit = found != set.end();
    std::rotate(set.begin(), hit ? found : set.end() - 1, hit ? found + 1 : set.end());
    set[0] = line;
    return hit;
}

}  // namespace sim

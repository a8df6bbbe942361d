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

void L2::end_launch(uint64_t filled_bytes, uint64_t dirty_bytes) {
    carried_ += filled_bytes / SECTOR;
    carried_dirty_ += dirty_bytes / SECTOR;
}

void L2::begin_phase() {
    ++pass_;
    again_ = false;
    come_ = 0;
    visits_.clear();
    met_.clear();
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

// The first access of a pass finds the sector as it was before the phase.
void L2::open(Sector &at) {
    if (at.pass == pass_) return;
    if (again_ && at.pass + 1 == pass_) {
        at.after = at.before;
    } else {
        at.before = at.after;
        at.newest = NONE;
    }
    at.last = NONE;
    at.cores = 0;
    at.pass = pass_;
}

// The core's newest visit to the sector in this pass.
uint32_t L2::find(Sector &at, uint32_t core) {
    if (at.last != NONE && visits_[at.last].core == core) return at.last;
    if (!(at.cores >> core % 32 & 1)) return NONE;
    for (uint32_t each = at.newest; each != NONE; each = visits_[each].next)
        if (visits_[each].core == core && each < come_) return at.last = each;
    return NONE;
}

// The second pass has the visits of the first one in the same order.
uint32_t L2::come(const Filler &filler, Sector &at, uint32_t own, const Part &part, bool write, bool moves) {
    const uint32_t number = come_++;
    at.cores |= 1u << filler.core % 32;
    if (again_) return at.last = number;
    Visit visit{};
    visit.next = at.newest;
    visit.cycle = static_cast<uint32_t>((filler.now - began_) / CYCLE);
    visit.core = filler.core;
    visit.moved = moves ? part.moved : 0;
    visit.used = part.needed | part.moved | (own == NONE ? 0 : visits_[own].used);
    visit.sharers = 1;
    visit.write = write;
    visit.alone = at.newest == NONE;
    if (at.newest != NONE && visits_[at.newest].alone) {
        visit.alone = visits_[at.newest].core == filler.core;
        if (!visit.alone) met_.push_back(&at);
    }
    visits_.push_back(visit);
    return at.newest = at.last = number;
}

bool L2::share(Ticks window, Ticks together) {
    for (const Sector *sector : met_)
        share(*sector, static_cast<uint32_t>(window / CYCLE), static_cast<uint32_t>(together / CYCLE));
    const bool shared =
        std::any_of(visits_.begin(), visits_.end(), [](const Visit &each) { return each.sharers != 1 || each.others; });
    ++pass_;
    again_ = true;
    come_ = 0;
    return shared;
}

void L2::share(const Sector &at, uint32_t window, uint32_t together) {
    order_.clear();
    for (uint32_t each = at.newest; each != NONE; each = visits_[each].next) {
        order_.push_back(&visits_[each]);
    }
    std::stable_sort(order_.begin(), order_.end(), [](const Visit *a, const Visit *b) { return a->cycle < b->cycle; });
    uint16_t there = 0;  // what other visits have brought
    size_t earlier = 0;
    for (Visit *visit : order_) {
        for (; order_[earlier]->cycle + together < visit->cycle; ++earlier) there |= order_[earlier]->moved;
        if (visit->write || !visit->moved || (visit->moved & ~there)) continue;
        visit->sharers = 0;
        visit->filled_at = order_[earlier - 1]->cycle;
    }
    for (size_t i = 0; i < order_.size(); ++i) {
        const Visit &visit = *order_[i];
        const auto fetches = [&](const Visit *each) {
            return each->sharers && !each->write && each->moved == visit.moved;
        };
        if (!visit.moved || visit.sharers != 1 || visit.write) continue;
        const auto sharers = std::min<int64_t>(255, std::count_if(order_.begin() + i, order_.end(), fetches));
        for (size_t j = i; j < order_.size(); ++j)
            if (fetches(order_[j])) order_[j]->sharers = static_cast<uint8_t>(sharers);
    }
    cores_.clear();
    for (const Visit *visit : order_) cores_.push_back(visit->core);
    std::sort(cores_.begin(), cores_.end());
    const auto others = std::unique(cores_.begin(), cores_.end()) - cores_.begin() - 1;
    size_t first = 0, end = 0;  // of the visits within the window
    for (Visit *visit : order_) {
        while (order_[first]->cycle + window < visit->cycle) ++first;
        while (end < order_.size() && order_[end]->cycle <= visit->cycle + window) ++end;
        visit->others = static_cast<uint8_t>(std::min<int64_t>(255, others));
        visit->contended = std::min(visit->others, static_cast<uint8_t>(std::min<size_t>(255, end - first - 1)));
    }
}

// Whether what another core has fetched was evicted since. `filled_at` is when that was; the core's own fills tell how
// much all cores have filled since then.
bool L2::evicted(const Filler &filler, const Visit &visit) const {
    const uint64_t filled = filler.filled * filler.beside / SECTOR, cycle = std::max(1u, visit.cycle);
    return filled * (cycle - visit.filled_at) / cycle > capacity_;
}

// Beyond the capacity older data is evicted, of which a part is dirty.
void L2::fill(Filler &filler, uint64_t bytes, bool write, Touch &touch) {
    filler.filled += bytes;
    if (write) filler.dirty += bytes;
    const uint64_t filled = carried_ + filler.filled * filler.beside / SECTOR;
    if (filled <= capacity_) return;
    if (!carried_dirty_) touch.written_back += bytes * filler.dirty / filler.filled;
    else touch.written_back += bytes * (carried_dirty_ + filler.dirty * filler.beside / SECTOR) / filled;
}

void L2::touch_sector(Filler &filler, Sector &at, const Part &part, bool write, bool bypass, Touch &touch) {
    open(at);
    const uint32_t before = find(at, filler.core);
    const bool known = before != NONE, first = at.cores == 0;
    const uint32_t filled_at = known ? visits_[before].filled_at : at.before.filled_at;
    const bool there = resident(filled_at, clock(filler));
    const uint16_t blocks = !there ? 0 : known ? visits_[before].all : at.before.blocks;
    bool hit = (part.needed & ~blocks) == 0;
    const bool comes = !known || (part.needed & ~visits_[before].used);
    Visit &visit = visits_[comes ? come(filler, at, before, part, write, !bypass && (write || !hit)) : before];
    if (comes && !bypass && !hit && !write && visit.sharers == 0) hit = !evicted(filler, visit);
    uint64_t filled = part.bytes;
    if (comes && !bypass && !hit && !write && visit.sharers > 1) {
        touch.joint += part.bytes;
        touch.part += ((static_cast<uint64_t>(part.bytes) << 16) + visit.sharers - 1) / visit.sharers;
        filled = (part.bytes + visit.sharers - 1) / visit.sharers;
    } else {
        (hit ? touch.hit : touch.miss) += part.bytes;
    }
    if (!write) touch.contended += visit.contended;
    if (!write && part.bytes < SECTOR) touch.shared += visit.others - visit.contended;
    visit.all = blocks;
    visit.filled_at = filled_at;
    if (bypass) return;
    if (!hit) fill(filler, filled, write, touch);
    if (part.needed & ~blocks) visit.all |= part.moved;
    visit.filled_at = clock(filler);
    if (!there) at.after.blocks = 0;
    at.after.blocks |= visit.all;
    at.after.filled_at = first ? visit.filled_at : std::max(at.after.filled_at, visit.filled_at);
}

void L2::burst(Filler &filler, uint64_t address, uint64_t bytes, bool write, bool bypass, Touch &touch) {
    if (bytes == 0) return;
    address = home(address);
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

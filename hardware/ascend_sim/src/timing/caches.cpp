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

void L2::begin_launch(Ticks now, uint32_t blocks, uint32_t cores, Ticks window, uint64_t bytes) {
    began_ = now;
    window_ = static_cast<uint32_t>(window / UNIT);
    sectors_ = static_cast<uint32_t>(bytes / SECTOR);
    most_ = static_cast<uint8_t>(std::min(255u, cores - 1));
    in_turn_ = blocks > cores;
}

void L2::begin_phase() {
    ++pass_;
    again_ = crowded_ = false;
    accesses_ = come_ = 0;
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
    if (again_ && at.pass + 1 == pass_) at.after = at.before;
    else at.before = at.after;
    at.newest = at.last = NONE;
    at.came = at.beyond = 0;
    at.met = false;
    at.pass = pass_;
}

// The block's newest visit to the sector in this pass. It becomes the head of the list, so that others are met on the way
// to it only once.
uint32_t L2::find(Sector &at, uint32_t block) {
    if (at.last != NONE && visits_[at.last].block == block) return at.last;
    if (in_turn_ || !(at.came >> block % 64 & 1)) return NONE;
    uint32_t before = NONE, each = at.newest;
    for (; each != NONE && visits_[each].block != block; each = visits_[each].next) before = each;
    if (each == NONE) return NONE;
    if (before != NONE) {
        visits_[before].next = visits_[each].next;
        visits_[each].next = at.newest;
        at.newest = each;
    }
    return at.last = each;
}

// The second pass has the visits of the first one.
bool L2::comes(const Filler &filler, uint32_t own, const Part &part) const {
    if (again_) return come_ < visits_.size() && visits_[come_].access == accesses_;
    if (come_ == MOST_VISITS) return false;
    return own == NONE || (part.needed & ~visits_[own].used) || !stays(filler, own);
}

bool L2::stays(const Filler &filler, uint32_t own) const {
    const Visit &stay = visits_[visits_[own].stay];
    return stay.time.close(time(filler), window_) || stay.place.close(place(filler), sectors_);
}

L2::Visit &L2::come(const Filler &filler, Sector &at, uint32_t own, const Part &part, bool write, bool moves) {
    const uint32_t number = come_++;
    if (!again_) {
        Visit visit{};
        visit.access = accesses_;
        visit.block = filler.block;
        visit.stay = own != NONE && stays(filler, own) ? visits_[own].stay : number;
        visit.time.first = time(filler);
        visit.place.first = place(filler);
        visit.takes = static_cast<uint32_t>(std::max<Ticks>(1, filler.takes / UNIT));
        visit.moved = moves ? part.moved : 0;
        visit.used = part.needed | part.moved | (own == NONE ? 0 : visits_[own].used);
        visit.sharers = 1;
        visit.write = write;
        visits_.push_back(visit);
        if (!at.met && at.newest != NONE && visits_[at.newest].block != filler.block) {
            at.met = true;
            met_.push_back(&at);
        }
    }
    visits_[number].next = at.newest;
    at.came |= 1ull << filler.block % 64;
    at.newest = at.last = number;
    return visits_[number];
}

bool L2::share(Ticks together, const std::function<void()> &at_work) {
    for (size_t i = 0; i < met_.size(); ++i) {
        if (i % 64 == 0) at_work();
        share(*met_[i], static_cast<uint32_t>(together / UNIT));
    }
    repeat();
    return !met_.empty();
}

void L2::repeat() {
    ++pass_;
    again_ = true;
    accesses_ = come_ = 0;
}

void L2::share(const Sector &at, uint32_t together) {
    order_.clear();
    blocks_.clear();
    for (uint32_t each = at.newest; each != NONE; each = visits_[each].next) {
        order_.push_back(&visits_[each]);
        blocks_.push_back(visits_[each].block);
    }
    std::sort(blocks_.begin(), blocks_.end());
    const auto others = std::unique(blocks_.begin(), blocks_.end()) - blocks_.begin() - 1;
    for (Visit *visit : order_) visit->others = static_cast<uint8_t>(std::min<int64_t>(most_, others));
    contend(&Visit::time, window_);
    contend(&Visit::place, sectors_);
    fetch_together(together);
}

void L2::fetch_together(uint32_t together) {
    const auto begins = [](const Visit *visit) { return visit->time.first; };
    const auto ends = [=](const Visit *visit) { return visit->time.first + std::min(visit->takes, together); };
    done_.assign(order_.begin(), order_.end());
    std::sort(order_.begin(), order_.end(), [=](const Visit *a, const Visit *b) { return begins(a) < begins(b); });
    std::sort(done_.begin(), done_.end(), [=](const Visit *a, const Visit *b) { return ends(a) < ends(b); });
    uint16_t there = 0;  // what other visits have brought
    size_t done = 0;
    for (Visit *visit : order_) {
        for (; done < done_.size() && ends(done_[done]) < begins(visit); ++done) there |= done_[done]->moved;
        if (visit->write || !visit->moved || (visit->moved & ~there)) continue;
        visit->sharers = 0;
        visit->brought = begins(done_[done - 1]);
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
}

// A stay is in step with those that begin before it ends, within the window, less those that end before it begins.
void L2::contend(Stay Visit::*kind, uint32_t window) {
    firsts_.clear();
    lasts_.clear();
    for (const Visit *visit : order_) {
        if (&visits_[visit->stay] != visit) continue;
        firsts_.push_back((visit->*kind).first);
        lasts_.push_back((visit->*kind).last);
    }
    std::sort(firsts_.begin(), firsts_.end());
    std::sort(lasts_.begin(), lasts_.end());
    for (Visit *visit : order_) {
        if (&visits_[visit->stay] != visit) continue;
        const Stay stay = visit->*kind;
        const auto begun = std::lower_bound(firsts_.begin(), firsts_.end(), stay.last + window) - firsts_.begin();
        const auto ended =
            std::upper_bound(lasts_.begin(), lasts_.end(), int64_t{stay.first} - window) - lasts_.begin();
        const auto in_step = std::min<int64_t>(visit->others, begun - ended - 1);
        visit->contended = static_cast<uint8_t>(std::max<int64_t>(visit->contended, in_step));
    }
}

// Whether what another core has fetched was evicted since then: the core's own fills tell how much all cores have filled.
bool L2::evicted(const Filler &filler, const Visit &visit) const {
    const uint64_t filled = filler.filled * filler.beside / SECTOR, now = std::max(1u, visit.time.first);
    return filled * (now - visit.brought) / now > capacity_;
}

// Beyond the capacity older data is evicted, of which a part is dirty.
void L2::fill(Filler &filler, uint64_t bytes, bool dirty, Touch &touch) {
    filler.filled += bytes;
    if (dirty) filler.dirty += bytes;
    const uint64_t filled = carried_ + filler.filled * filler.beside / SECTOR;
    if (filled <= capacity_) return;
    if (!carried_dirty_) touch.written_back += bytes * filler.dirty / filler.filled;
    else touch.written_back += bytes * (carried_dirty_ + filler.dirty * filler.beside / SECTOR) / filled;
}

// An update is shared among cores as a read is, and dirty as a write is.
void L2::touch_sector(Filler &filler, Sector &at, const Part &part, Use use, bool bypass, Touch &touch) {
    const bool write = use == Use::WRITE, read = use == Use::READ;
    open(at);
    ++accesses_;
    const uint32_t own = find(at, filler.block);
    const bool known = own != NONE, first = !(at.came | at.beyond);
    const uint32_t filled_at = known ? visits_[own].filled_at : at.before.filled_at;
    const bool there = resident(filled_at, clock(filler));
    const uint16_t blocks = !there ? 0 : known ? visits_[own].all : at.before.blocks;
    bool hit = (part.needed & ~blocks) == 0;
    const bool fetches = comes(filler, own, part);
    const bool kept = fetches || known;
    Visit &visit = fetches ? come(filler, at, own, part, write, !bypass && (write || !hit))
                   : known ? visits_[own]
                           : beyond_;
    Visit &stay = kept ? visits_[visit.stay] : beyond_;
    if (!again_) stay.time.last = time(filler), stay.place.last = place(filler);
    if (fetches && visit.moved && !write && visit.sharers == 0) hit = !evicted(filler, visit);
    uint64_t filled = part.bytes;
    if (fetches && !write && visit.sharers > 1) {
        touch.joint += part.bytes;
        touch.part += ((static_cast<uint64_t>(part.bytes) << 16) + visit.sharers - 1) / visit.sharers;
        filled = (part.bytes + visit.sharers - 1) / visit.sharers;
        hit = false;
    } else {
        (hit || write ? touch.hit : touch.miss) += part.bytes;
    }
    const uint64_t bit = 1ull << filler.block % 64;
    if (!kept) at.beyond |= bit;
    if (read && (crowded_ || !kept)) touch.contended += (at.came | at.beyond) & ~bit ? most_ : 0;
    else if (read) touch.contended += stay.contended;
    if (read && part.bytes < SECTOR) touch.shared += stay.others - stay.contended;
    visit.all = blocks;
    visit.filled_at = filled_at;
    if (bypass) return;
    if (!hit) fill(filler, filled, !read, touch);
    if (part.needed & ~blocks) visit.all |= part.moved;
    visit.filled_at = clock(filler);
    if (!there) at.after.blocks = 0;
    at.after.blocks |= visit.all;
    at.after.filled_at = first ? visit.filled_at : std::max(at.after.filled_at, visit.filled_at);
}

void L2::burst(Filler &filler, uint64_t address, uint64_t bytes, Use use, bool bypass, Touch &touch) {
    if (bytes == 0) return;
    address = home(address);
    if (use == Use::READ) filler.read += bytes;
    const uint64_t first = address / SECTOR, last = (address + bytes - 1) / SECTOR;
    const uint64_t needed = (bytes + SECTOR - 1) / SECTOR, requests = last - first + 1;
    touch.requests += static_cast<uint32_t>(requests);
    touch.extra += static_cast<uint32_t>(requests - needed);
    const uint64_t unit = use == Use::READ && bytes < SECTOR ? LINE : BLOCK;  // short reads move whole lines
    for (uint64_t number = first; number <= last; ++number) {
        const uint64_t from = std::max(address, number * SECTOR) % SECTOR;
        const uint64_t to = std::min(address + bytes, (number + 1) * SECTOR) - number * SECTOR;
        const auto touch_bytes = [&](uint64_t first_byte, uint64_t end_byte, Use what) {
            if (first_byte == end_byte) return;
            const uint64_t begin = first_byte / unit * unit, end = (end_byte + unit - 1) / unit * unit;
            const Part part{blocks_of(first_byte, end_byte), blocks_of(begin, end), static_cast<uint32_t>(end - begin)};
            touch_sector(filler, sector(number), part, what, bypass, touch);
        };
        if (use != Use::WRITE) {
            touch_bytes(from, to, use);
            continue;
        }
        const uint64_t head = std::min(to, (from + BLOCK - 1) / BLOCK * BLOCK),
                       tail = std::max(head, to / BLOCK * BLOCK);
        touch_bytes(from, head, Use::UPDATE);
        touch_bytes(head, tail, Use::WRITE);
        touch_bytes(tail, to, Use::UPDATE);
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

Ticks Way::begins(Ticks now, Ticks work) const {
    const Ticks in_gap = std::max(now, gap_begin_);
    return in_gap + work <= gap_end_ ? in_gap : std::max(now, end_);
}

DataCache::DataCache(uint64_t bytes) : sets_(std::max<uint64_t>(1, bytes / (LINE * WAYS))) { drop_all(); }

bool DataCache::hit(uint64_t address) {
    const uint64_t line = address / LINE;
    auto &set = set_of(line);
    auto found = std::find(set.begin(), set.end(), line);
    const bool hit = found != set.end();
    std::rotate(set.begin(), hit ? found : set.end() - 1, hit ? found + 1 : set.end());
    set[0] = line;
    return hit;
}

void DataCache::drop(uint64_t address) {
    auto &set = set_of(address / LINE);
    std::replace(set.begin(), set.end(), address / LINE, ABSENT);
}

void DataCache::drop_all() {
    for (auto &set : sets_) set.fill(ABSENT);
}

}  // namespace sim

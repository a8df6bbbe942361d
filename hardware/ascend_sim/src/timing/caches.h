// The memory side: which global data is in L2, which cores read it together, how busy the path to HBM is, and the scalar
// unit's data cache. This file holds residence and contention only; timeline.cpp computes their costs.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chip.h"

namespace sim {

// What a burst does. An update needs what was there: an atomic copy, and a write of a part of a block.
enum class Use : uint8_t { READ, WRITE, UPDATE };

// The result of one burst. Bytes are whole blocks of 32, or whole lines in a read that is shorter than a sector.
//   miss       bytes that are fetched; a write fetches none, so all of its bytes are hits
//   joint      bytes that several cores fetch together, of which `part` is this core's, in 65536ths of a byte
//   requests   sectors of 512 bytes; `extra`: those that exist only because the burst does not start on a boundary
//   contended  for each sector, the other cores that are in step
//   shared     for each sector that is read in part, the other cores that are not in step
//   pages      bursts in another page of 2 MB than the one before
struct Touch {
    uint64_t hit = 0, miss = 0, written_back = 0, joint = 0, part = 0;
    uint32_t requests = 0, extra = 0, shared = 0, contended = 0, pages = 0;

    uint64_t bytes() const { return hit + miss + joint; }
    uint64_t parts() const { return (part + 65535) >> 16; }
    uint64_t fetched() const { return miss + parts(); }
};

// How much of L2 a core has filled in this launch. Cores are timed one after another, so each core represents all: the
// bytes it has filled times the number of cores that run beside it approximate the whole chip at that moment. `now`: when
// its access begins. `takes`: how long it takes its bytes from HBM. `read`: how many bytes its block has read.
struct Filler {
    uint32_t block = 0, beside = 1;
    uint64_t filled = 0, dirty = 0;
    Ticks now = 0, takes = 0;
    uint64_t read = 0;
};

// L2 in sectors of 512 bytes, which hold the blocks that were moved. A sector is resident while less than the capacity
// was filled since its last access. This is least recently used without a stored order.
//
// A phase of a launch is timed in two passes. In the first one each core finds what was there before the phase and what
// it moved itself. Then it is known when each core comes to each sector, and the second pass has the same accesses.
class L2 {
public:
    static constexpr uint32_t BLOCK = 32, LINE = 128, SECTOR = 512;
    static constexpr Ticks UNIT = 16 * CYCLE;  // of time
    explicit L2(const Chip &chip)
        : capacity_(static_cast<uint64_t>(chip.memory.l2_bytes * chip.memory.l2_usable) / SECTOR) {}

    // The number under which each tensor of the next launches is known, by its index: launches of one call may have the
    // same tensor at different places among their arguments. Empty: a tensor's number is its index.
    void name_tensors(std::vector<uint32_t> numbers) { numbers_ = std::move(numbers); }

    // Blocks are in step at a sector if they come to it within `window` of each other, or if they have read the same number
    // of bytes until then, within `bytes`. Blocks beyond the cores do not wait for each other, so their accesses come one
    // block after another.
    void begin_launch(Ticks now, uint32_t blocks, uint32_t cores, Ticks window, uint64_t bytes);
    void end_launch(uint64_t filled_bytes, uint64_t dirty_bytes);
    void begin_phase();
    // From now on every core that reads what another one has come to in this phase pays as if all were in step.
    void crowd() { crowded_ = true; }
    // Begins the second pass, in which cores that come to the same blocks while the first one fetches them, for at
    // most `together`, fetch them with it, and later ones find them in L2. False: no core read what another one
    // touched, and the second pass would be like the first. `at_work` is called now and then.
    bool share(Ticks together, const std::function<void()> &at_work);
    // Begins the second pass once more.
    void repeat();
    // Adds the result of a burst to `touch`. A read with `bypass` is not kept in L2.
    void burst(Filler &filler, uint64_t address, uint64_t bytes, Use use, bool bypass, Touch &touch);

private:
    struct Held {
        uint32_t filled_at = 0;  // the fill clock, in sectors
        uint16_t blocks = 0;
    };
    struct Sector {
        Held before, after;                   // the phase
        uint32_t pass = 0;                    // of the last access
        uint32_t newest = NONE, last = NONE;  // visits: the head of the list, that of the last block
        uint64_t came = 0, beyond = 0;        // blocks of this pass as bits modulo 64: with visits, and without
        bool met = false;                     // several blocks have visits
    };
    // From the first to the last of accesses that are in step with each other.
    struct Stay {
        uint32_t first, last;
        bool close(uint32_t next, uint32_t window) const { return next < static_cast<uint64_t>(last) + window; }
    };
    // A block comes to a sector: for the first time, or out of step with its last access, which begins a stay, or to parts
    // of the sector that it has not used before in this phase.
    struct Visit {
        uint32_t access;     // that began it, counted in this pass
        uint32_t next;       // in the list of the sector's visits
        uint32_t filled_at;  // the fill clock of its block's last access
        uint32_t brought;    // when another core had fetched it, in units
        uint32_t block;
        uint32_t stay;              // the visit that began it
        uint32_t takes;             // units of time, until what it brings is there
        Stay time, place;           // in the launch, in units; in what its block reads, in sectors
        uint16_t moved, all, used;  // parts: those that it brings, all that its block finds now, those it has come to
        uint8_t sharers;            // that fetch together; 0: another core has fetched it before
        uint8_t others, contended;  // other cores that come to the sector in this phase; those that are in step
        bool write;
    };
    // What a burst touches of a sector: the blocks that it needs, and those that move if one of them is not there.
    struct Part {
        uint16_t needed, moved;
        uint32_t bytes;  // moved
    };
    static constexpr uint32_t PAGE = 4096;  // sectors
    static constexpr uint32_t NONE = 0xffffffff;
    static constexpr size_t MOST_VISITS = 1u << 23;
    static constexpr Ticks LATEST = 0xf0000000;  // in units
    using Page = std::array<Sector, PAGE>;

    Sector &sector(uint64_t number);
    void open(Sector &at);
    uint32_t find(Sector &at, uint32_t block);
    bool comes(const Filler &filler, uint32_t own, const Part &part) const;
    bool stays(const Filler &filler, uint32_t own) const;
    Visit &come(const Filler &filler, Sector &at, uint32_t own, const Part &part, bool write, bool moves);
    bool evicted(const Filler &filler, const Visit &visit) const;
    void share(const Sector &at, uint32_t together);
    void fetch_together(uint32_t together);
    void contend(Stay Visit::*stay, uint32_t window);
    void touch_sector(Filler &filler, Sector &at, const Part &part, Use use, bool bypass, Touch &touch);
    void fill(Filler &filler, uint64_t bytes, bool dirty, Touch &touch);
    uint32_t clock(const Filler &filler) const;
    bool resident(uint32_t filled_at, uint32_t now) const {
        return static_cast<int64_t>(now) - filled_at <= static_cast<int64_t>(capacity_);
    }
    uint64_t home(uint64_t address) const;
    uint32_t time(const Filler &filler) const {
        return static_cast<uint32_t>(std::min<Ticks>((filler.now - began_) / UNIT, LATEST));
    }
    static uint32_t place(const Filler &filler) { return static_cast<uint32_t>(filler.read / SECTOR); }

    uint64_t capacity_, carried_ = 0, carried_dirty_ = 0;
    Ticks began_ = 0;
    uint32_t window_ = 0, sectors_ = 0;  // within which blocks are in step: units of time, sectors
    uint8_t most_ = 0;                   // other cores of the launch
    bool in_turn_ = false;               // blocks come one after another
    bool crowded_ = false;
    uint32_t pass_ = 0;
    uint32_t accesses_ = 0, come_ = 0;  // how many accesses and visits there were in this pass
    bool again_ = false;                // the second pass
    Visit beyond_{};                    // of blocks that come when there are as many visits as are kept
    uint64_t last_number_ = ~0ull;
    Page *last_page_ = nullptr;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    std::vector<Visit> visits_;
    std::vector<const Sector *> met_;  // sectors that several cores came to
    std::vector<Visit *> order_;       // of one sector
    std::vector<const Visit *> done_;  // the same, in the order in which what they bring is there
    std::vector<uint32_t> blocks_, firsts_, lasts_;
    std::vector<uint32_t> numbers_;
};

// A path that several pipes of a core share, one transfer at a time. Transfers are booked in program order but may
// start earlier than those booked before; they may use the last gap that was left.
class Way {
public:
    // The end of a transfer that is ready at `now` and takes `work`.
    Ticks book(Ticks now, Ticks work);
    // When a transfer that is ready at `now` would begin. One that does not fit into the gap comes after all others.
    Ticks begins(Ticks now, Ticks work) const;

private:
    Ticks end_ = 0, gap_begin_ = 0, gap_end_ = 0;
};

// The scalar unit's data cache: 64-byte lines, four-way associative, least recently used.
class DataCache {
public:
    static constexpr uint32_t LINE = 64, WAYS = 4;
    explicit DataCache(uint64_t bytes);
    bool hit(uint64_t address);
    void drop(uint64_t address);
    void drop_all();

private:
    std::array<uint64_t, WAYS> &set_of(uint64_t line) { return sets_[line % sets_.size()]; }

    static constexpr uint64_t ABSENT = ~0ull;
    std::vector<std::array<uint64_t, WAYS>> sets_;
};

}  // namespace sim

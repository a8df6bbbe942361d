// The memory side: which global data is in L2, which cores read it together, how busy the path to HBM is, and the scalar
// unit's data cache. This file holds residence and contention only; timeline.cpp computes their costs.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chip.h"

namespace sim {

// The result of one burst. `joint`: bytes that several cores fetch together, of which `part` is this core's, in 65536ths
// of a byte. `requests` counts sectors of 512 bytes; `extra` counts those that exist only because the burst does not
// start on a sector boundary. `contended` counts, for each sector, the cores that read it at about the same time, `shared`
// partially read sectors that another core reads at another time of the phase, `pages` bursts in another page of 2 MB
// than the one before. Bytes are whole blocks of 32, or whole lines in a read that is shorter than a sector.
struct Touch {
    uint64_t hit = 0, miss = 0, written_back = 0, joint = 0, part = 0;
    uint32_t requests = 0, extra = 0, shared = 0, contended = 0, pages = 0;

    uint64_t parts() const { return (part + 65535) >> 16; }
    uint64_t fetched() const { return miss + parts(); }
};

// How much of L2 a core has filled in this launch. Cores are timed one after another, so each core represents all: the
// bytes it has filled times the number of cores that run beside it approximate the whole chip at that moment. `now`: when
// its access begins. `core`: the same in both passes, so blocks beyond the cores count for one of them by their number.
struct Filler {
    uint32_t core = 0, beside = 1;
    uint64_t filled = 0, dirty = 0;
    Ticks now = 0;
};

// L2 in sectors of 512 bytes, which hold the blocks that were moved. A sector is resident while less than the capacity
// was filled since its last access. This is least recently used without a stored order.
//
// A phase of a launch is timed in two passes. In the first one each core finds what was there before the phase and what
// it moved itself. Then it is known when each core comes to each sector, and the second pass has the same accesses.
class L2 {
public:
    static constexpr uint32_t BLOCK = 32, LINE = 128, SECTOR = 512;
    explicit L2(const Chip &chip)
        : capacity_(static_cast<uint64_t>(chip.memory.l2_bytes * chip.memory.l2_usable) / SECTOR) {}

    // The number under which each tensor of the next launches is known, by its index: launches of one call may have the
    // same tensor at different places among their arguments. Empty: a tensor's number is its index.
    void name_tensors(std::vector<uint32_t> numbers) { numbers_ = std::move(numbers); }

    void begin_launch(Ticks now) { began_ = now; }
    void end_launch(uint64_t filled_bytes, uint64_t dirty_bytes);
    void begin_phase();
    // Begins the second pass, in which cores that come to the same blocks within `together` of the first one fetch them
    // together, and later ones find them in L2. Sectors are contended for by cores that read them within `window` of
    // each other. False: no core read what another one touched, and the second pass would be like the first.
    bool share(Ticks window, Ticks together);
    // Adds the result of a burst to `touch`. A read with `bypass` is not kept in L2.
    void burst(Filler &filler, uint64_t address, uint64_t bytes, bool write, bool bypass, Touch &touch);

private:
    struct Held {
        uint32_t filled_at = 0;  // the fill clock, in sectors
        uint16_t blocks = 0;
    };
    struct Sector {
        Held before, after;                   // the phase
        uint32_t pass = 0;                    // of the last access
        uint32_t newest = NONE, last = NONE;  // visits: the newest one, the newest of the last core
        uint32_t cores = 0;                   // that came in this pass, as bits modulo 32
    };
    // A core comes to blocks of a sector that it has not used before in this phase.
    struct Visit {
        uint32_t next;       // the visit to the sector before this one
        uint32_t filled_at;  // the fill clock of its core's last access
        uint32_t cycle;      // of the launch
        uint32_t core;
        uint16_t moved, all, used;  // blocks: those that it brings, all that its core finds now, those it has come to
        uint8_t sharers;            // that fetch together; 0: another core has fetched it before
        uint8_t contended, others;  // other cores that read the sector: within the window, and in the phase
        bool write : 1, alone : 1;
    };
    // What a burst touches of a sector: the blocks that it needs, and those that move if one of them is not there.
    struct Part {
        uint16_t needed, moved;
        uint32_t bytes;  // moved
    };
    static constexpr uint32_t PAGE = 4096;  // sectors
    static constexpr uint32_t NONE = 0xffffffff;
    using Page = std::array<Sector, PAGE>;

    Sector &sector(uint64_t number);
    void open(Sector &at);
    uint32_t find(Sector &at, uint32_t core);
    uint32_t come(const Filler &filler, Sector &at, uint32_t own, const Part &part, bool write, bool moves);
    bool evicted(const Filler &filler, const Visit &visit) const;
    void share(const Sector &at, uint32_t window, uint32_t together);
    void touch_sector(Filler &filler, Sector &at, const Part &part, bool write, bool bypass, Touch &touch);
    void fill(Filler &filler, uint64_t bytes, bool write, Touch &touch);
    uint32_t clock(const Filler &filler) const;
    bool resident(uint32_t filled_at, uint32_t now) const {
        return static_cast<int64_t>(now) - filled_at <= static_cast<int64_t>(capacity_);
    }
    uint64_t home(uint64_t address) const;

    uint64_t capacity_, carried_ = 0, carried_dirty_ = 0;
    Ticks began_ = 0;
    uint32_t pass_ = 0, come_ = 0;  // how many visits there were in this pass
    bool again_ = false;            // the second pass
    uint64_t last_number_ = ~0ull;
    Page *last_page_ = nullptr;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    std::vector<Visit> visits_;
    std::vector<const Sector *> met_;  // sectors that several cores came to
    std::vector<Visit *> order_;
    std::vector<uint32_t> cores_;
    std::vector<uint32_t> numbers_;
};

// A path that several pipes of a core share, one transfer at a time. Transfers are booked in program order but may
// start earlier than those booked before; they may use the last gap that was left.
class Way {
public:
    // The end of a transfer that is ready at `now` and takes `work`.
    Ticks book(Ticks now, Ticks work);

private:
    Ticks end_ = 0, gap_begin_ = 0, gap_end_ = 0;
};

// The scalar unit's data cache: 64-byte lines, four-way associative, least recently used.
class DataCache {
public:
    static constexpr uint32_t LINE = 64, WAYS = 4;
    explicit DataCache(uint64_t bytes);
    bool hit(uint64_t address);

private:
    std::vector<std::array<uint64_t, WAYS>> sets_;
};

}  // namespace sim

// The state of the memory side: which global data lies in L2, who else reads it, how busy the way to HBM is, and the
// scalar unit's data cache. Only facts of residence and contention; what they cost is decided in timeline.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "chip.h"

namespace sim {

// What one burst found. `requests` are sectors of 512 bytes; `extra` of them are there only because the burst does not
// start on a sector. `contended` ask for a sector that another core reads at about the same time, `shared` for a part
// of one that another reads at some other time of this launch.
struct Touch {
    uint64_t hit = 0, miss = 0, written_back = 0;
    uint32_t requests = 0, extra = 0, shared = 0, contended = 0;
};

// How much of L2 a core has filled, and how far it has come with reading. Cores are timed one after another, so each
// counts for all: what it has filled times the cores that run beside it stands for the whole chip at that moment.
struct Filler {
    uint32_t core = 0, beside = 1;
    uint64_t filled = 0, dirty = 0, read = 0;
};

// L2 in sectors of 512 bytes with four lines each. A sector is resident while less than the capacity was filled since
// its last touch: least recently used, without keeping the order.
class L2 {
public:
    static constexpr uint32_t LINE = 128, SECTOR = 512;
    explicit L2(uint64_t capacity) : capacity_(capacity / SECTOR) {}

    // Cores that come to a sector within `window` bytes of their reading come at about the same time.
    void begin_launch(uint64_t window);
    void end_launch(uint64_t filled_bytes) { carried_ += filled_bytes / SECTOR; }
    // Of the bytes that block `core` was the first to fetch in this launch: those that fall to the cores that read them
    // after it, if all that read a sector bear an equal part.
    uint64_t fetched_for_others(uint32_t core) const { return core < for_others_.size() ? for_others_[core] : 0; }
    // Adds to `touch` what a burst meets; `bypass` leaves no trace of a read in L2.
    void burst(Filler &filler, uint64_t address, uint64_t bytes, bool write, bool bypass, Touch &touch);

private:
    struct Sector {
        uint32_t filled_at = 0;   // the clock of fillings, in sectors
        uint32_t launch = 0;      // in which it was last touched; 0: never
        uint32_t reached_at = 0;  // how far `core` had come when it began to use it, in sectors
        uint16_t core = 0;        // the last that touched it
        uint16_t fetched_by = 0;
        uint8_t lines = 0;
        uint8_t readers = 0;  // in this launch, the one that fetched it included; 0: written
        bool close = false;   // the last two cores that read it did so at about the same time
    };
    static constexpr uint32_t PAGE = 4096;  // sectors
    using Page = std::array<Sector, PAGE>;

    Sector &sector(uint64_t number);
    void touch_sector(Filler &filler, Sector &at, uint8_t lines, uint32_t bytes, bool write, bool bypass, Touch &touch);
    void meet(const Filler &filler, Sector &sector, uint32_t bytes);
    void fill(Filler &filler, uint32_t bytes, bool write, Touch &touch);
    uint32_t clock(const Filler &filler) const;

    uint64_t capacity_, carried_ = 0;
    uint32_t launch_ = 0, window_ = 0;
    uint64_t last_number_ = ~0ull;
    Page *last_page_ = nullptr;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    std::vector<uint64_t> for_others_;
};

// A way that several pipes of a core share, one transfer after another. Transfers are booked in program order but may
// lie earlier in time than those booked before; they may use the last gap that was left.
class Way {
public:
    // When a transfer that is ready at `now` and takes `work` is through.
    Ticks book(Ticks now, Ticks work);

private:
    Ticks end_ = 0, gap_begin_ = 0, gap_end_ = 0;
};

// The scalar unit's data cache: 64-byte lines, four to a set, least recently used.
class DataCache {
public:
    explicit DataCache(uint64_t bytes);
    bool hit(uint64_t address);

private:
    static constexpr uint32_t LINE = 64, WAYS = 4;
    std::vector<std::array<uint64_t, WAYS>> sets_;
};

}  // namespace sim

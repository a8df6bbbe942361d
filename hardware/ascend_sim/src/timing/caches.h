// The memory side: which global data is in L2, which other cores read it, how busy the path to HBM is, and the scalar
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

// The result of one burst. `taken`: bytes that another core fetched in this phase, if this core reads them first here.
// `requests` counts sectors of 512 bytes; `extra` counts those that exist only because the burst does not start on a
// sector boundary. `contended` counts sectors that another core reads at about the same time, `shared` partially read
// sectors that another core reads at another time of this launch, `pages` bursts in another page of 2 MB than the one
// before. Bytes are whole blocks of 32, or whole lines in a read that is shorter than a sector.
struct Touch {
    uint64_t hit = 0, miss = 0, written_back = 0, taken = 0;
    uint32_t requests = 0, extra = 0, shared = 0, contended = 0, pages = 0;
};

// How much of L2 a core has filled in this launch, and how many bytes its block has read. Cores are timed one after
// another, so each core represents all: the bytes it has filled times the number of cores that run beside it approximate
// the whole chip at that moment. `now`: when its access begins.
struct Filler {
    uint32_t core = 0, beside = 1;
    uint64_t filled = 0, dirty = 0, read = 0;
    Ticks now = 0;
};

// L2 in sectors of 512 bytes, which hold the blocks that were moved. A sector is resident while less than the capacity
// was filled since its last access. This is least recently used without a stored order.
class L2 {
public:
    static constexpr uint32_t BLOCK = 32, LINE = 128, SECTOR = 512;
    explicit L2(const Chip &chip)
        : capacity_(static_cast<uint64_t>(chip.memory.l2_bytes * chip.memory.l2_usable) / SECTOR),
          told_(ticks(chip.launch.event_cycles)) {}

    // The number under which each tensor of the next launches is known, by its index: launches of one call may have the
    // same tensor at different places among their arguments. Empty: a tensor's number is its index.
    void name_tensors(std::vector<uint32_t> numbers) { numbers_ = std::move(numbers); }

    // Two cores read a sector at about the same time if their read positions are within `window` bytes of each other.
    void begin_launch(uint64_t window);
    // What cores read before and after all of them have met is not shared.
    void begin_phase();
    void end_launch(uint64_t filled_bytes) { carried_ += filled_bytes / SECTOR; }
    // The part of the bytes first fetched by block `core` in this phase that is charged to later readers, when all
    // readers of a sector share its cost equally. If cores have waited for one another (`flags`), readers that may have
    // been told that it was fetched share nothing.
    uint64_t fetched_for_others(uint32_t core, bool flags) const {
        if (core >= for_others_.size()) return 0;
        return for_others_[core].bytes - (flags ? for_others_[core].late : 0);
    }
    // Adds the result of a burst to `touch`. A read with `bypass` is not kept in L2.
    void burst(Filler &filler, uint64_t address, uint64_t bytes, bool write, bool bypass, Touch &touch);

private:
    struct Sector {
        uint32_t filled_at = 0;   // the fill clock, in sectors
        uint32_t phase = 0;       // phase of the last access; 0: never
        uint32_t reached_at = 0;  // read position of `core` when it began to use the sector, in sectors
        Ticks fetched_at = 0;     // when its fetch began
        uint16_t core = 0;        // the last core that accessed it
        uint16_t fetched_by = 0;  // NOBODY: it was there before this phase
        uint16_t blocks = 0;
        uint8_t readers = 0;  // readers, including the core that fetched it; 0: written, not read since
        bool close = false;   // the last two cores read it at about the same time
    };
    // What a burst touches of a sector: the blocks that it needs, and those that move if one of them is not there.
    struct Part {
        uint16_t needed, moved;
        uint32_t bytes;  // moved
    };
    struct Repaid { uint64_t bytes = 0, late = 0; };  // late: of readers that may have been told
    static constexpr uint32_t PAGE = 4096;            // sectors
    static constexpr uint16_t NOBODY = 0xffff;
    using Page = std::array<Sector, PAGE>;

    Sector &sector(uint64_t number);
    void touch_sector(Filler &filler, Sector &at, const Part &part, bool write, bool bypass, Touch &touch);
    void meet(const Filler &filler, Sector &sector, uint32_t bytes);
    void fill(Filler &filler, uint32_t bytes, bool write, Touch &touch);
    uint32_t clock(const Filler &filler) const;
    uint64_t home(uint64_t address) const;

    uint64_t capacity_, carried_ = 0;
    Ticks told_;  // what a flag takes
    uint32_t phase_ = 0, window_ = 0;
    uint64_t last_number_ = ~0ull;
    Page *last_page_ = nullptr;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    std::vector<Repaid> for_others_;
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

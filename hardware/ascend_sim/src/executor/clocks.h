// Happens-before inside one core: which instructions of the other pipes are known to be finished.
//
// Each pipe numbers its instructions. A pipe's clock holds, for every pipe, the number of the last instruction that is
// known to be finished; queues and flags carry clocks from pipe to pipe. Detection does not depend on timing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../../include/abi.h"

namespace sim {

struct Clock { uint32_t over[ASC_PIPES] = {}; };

class PipeClocks {
public:
    uint32_t issue(uint32_t pipe) { return ++issued_[pipe]; }
    uint32_t issued(uint32_t pipe) const { return issued_[pipe]; }

    // The scalar unit issues every instruction, so an instruction inherits the scalar unit's clock.
    uint32_t known(uint32_t pipe, uint32_t other) const {
        return std::max(clocks_[pipe].over[other], clocks_[ASC_S].over[other]);
    }

    Clock snapshot(uint32_t pipe) const {
        Clock clock;
        for (uint32_t other = 0; other < ASC_PIPES; ++other) clock.over[other] = known(pipe, other);
        clock.over[pipe] = issued_[pipe];
        return clock;
    }

    void join(uint32_t pipe, const Clock &clock) {
        for (uint32_t other = 0; other < ASC_PIPES; ++other) {
            clocks_[pipe].over[other] = std::max(clocks_[pipe].over[other], clock.over[other]);
        }
    }

    void join_all() {
        for (Clock &clock : clocks_) std::copy(issued_, issued_ + ASC_PIPES, clock.over);
    }

private:
    uint32_t issued_[ASC_PIPES] = {};
    Clock clocks_[ASC_PIPES];
};

// The last instruction that touched each block of 32 bytes. Numbers only grow, so an access that covers a whole group
// of blocks is recorded once for the group, and the newest access of a group is always the last one.
class LastTouch {
public:
    void mark(uint32_t capacity, uint32_t begin, uint32_t end, uint32_t number) {
        if (blocks_.empty()) resize(capacity);
        const uint32_t first = begin / block_bytes, last = (end - 1) / block_bytes;
        for (uint32_t group = first / group_blocks; group <= last / group_blocks; ++group) {
            newest_[group] = number;
            const uint32_t from = std::max(first, group * group_blocks);
            const uint32_t to = std::min(last, group * group_blocks + group_blocks - 1);
            if (to - from + 1 == group_blocks) {
                whole_[group] = number;
            } else {
                std::fill(blocks_.begin() + from, blocks_.begin() + to + 1, number);
            }
        }
    }

    // The newest instruction that touched any byte of [begin, end); 0 if there is none.
    uint32_t newest(uint32_t begin, uint32_t end) const {
        if (blocks_.empty()) return 0;
        const uint32_t first = begin / block_bytes, last = (end - 1) / block_bytes;
        uint32_t result = 0;
        for (uint32_t group = first / group_blocks; group <= last / group_blocks; ++group) {
            if (newest_[group] > result) result = std::max(result, newest_in(group, first, last));
        }
        return result;
    }

private:
    static constexpr uint32_t block_bytes = 32, group_blocks = 32;

    uint32_t newest_in(uint32_t group, uint32_t first, uint32_t last) const {
        const uint32_t from = std::max(first, group * group_blocks);
        const uint32_t to = std::min(last, group * group_blocks + group_blocks - 1);
        if (to - from + 1 == group_blocks) return newest_[group];
        uint32_t result = whole_[group];
        for (uint32_t block = from; block <= to; ++block) result = std::max(result, blocks_[block]);
        return result;
    }

    void resize(uint32_t capacity) {
        const uint32_t groups = (capacity + block_bytes * group_blocks - 1) / (block_bytes * group_blocks);
        blocks_.assign(static_cast<size_t>(groups) * group_blocks, 0);
        whole_.assign(groups, 0);
        newest_.assign(groups, 0);
    }

    std::vector<uint32_t> blocks_, whole_, newest_;
};

}  // namespace sim

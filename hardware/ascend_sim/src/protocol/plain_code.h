// Plain C++ that ran before a record.
#pragma once
#include <cstdint>

namespace sim {

struct PlainCode {
    uint32_t blocks, cycles;  // basic blocks, which the budget counts, and what they cost the scalar unit

    bool operator==(const PlainCode &other) const { return blocks == other.blocks && cycles == other.cycles; }
    bool operator!=(const PlainCode &other) const { return !(*this == other); }

    // In the words of a loop.
    uint64_t word() const { return static_cast<uint64_t>(cycles) << 32 | blocks; }
    static PlainCode of(uint64_t word) { return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)}; }
};

}  // namespace sim

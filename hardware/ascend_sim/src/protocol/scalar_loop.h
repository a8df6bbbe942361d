// A loop of scalar accesses: a period of accesses that repeats, each with a constant step between its addresses.
#pragma once
#include <cstdint>

#include "plain_code.h"

namespace sim {

struct ScalarLoop {
    enum : uint32_t { MOST = 32 };  // accesses of a period
    struct Slot {
        uint64_t where;  // its first address in the loop; on-chip with the space in the upper half
        int64_t step;
        int32_t line;
        PlainCode code;  // before the access
        uint8_t dtype;
        bool global, write;
    };
    uint32_t core = 0, period = 0, count = 0;  // count: accesses in all; the last period may be incomplete
    Slot slots[MOST];
    const PlainCode *varied = nullptr;  // code by access, if it varies

    const Slot &slot(uint32_t access) const { return slots[access % period]; }
    uint64_t where(uint32_t access) const {
        return slot(access).where + static_cast<uint64_t>(slot(access).step) * (access / period);
    }
    PlainCode code_before(uint32_t access) const { return varied ? varied[access] : slot(access).code; }
    // Plain code before an access counts for the line of the access before it.
    int32_t line_before(uint32_t access) const { return slots[(access + period - 1) % period].line; }
    uint32_t times(uint32_t slot) const { return (count + period - 1 - slot) / period; }
};

}  // namespace sim

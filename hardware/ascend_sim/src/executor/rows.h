// Equally spaced rows of bytes: the bytes that one copy touches in global memory.
#pragma once
#include <cstdint>

namespace sim {

struct Rows {
    uint64_t begin = 0, bytes = 0, count = 0, pitch = 0;

    uint64_t end() const { return count ? begin + (count - 1) * pitch + bytes : begin; }

    // Whether any row overlaps [from, to).
    bool meets(uint64_t from, uint64_t to) const {
        if (from >= end() || to <= begin) return false;
        if (count == 1 || pitch <= bytes) return true;
        const uint64_t row = from > begin ? (from - begin) / pitch : 0;  // the last row that starts at or before `from`
        if (row < count && begin + row * pitch < to && begin + row * pitch + bytes > from) return true;
        return row + 1 < count && begin + (row + 1) * pitch < to;
    }

    bool meets(const Rows &other) const {
        if (other.begin >= end() || begin >= other.end()) return false;
        const Rows &few = count <= other.count ? *this : other, &many = count <= other.count ? other : *this;
        for (uint64_t row = 0; row < few.count; ++row) {
            const uint64_t from = few.begin + row * few.pitch;
            if (many.meets(from, from + few.bytes)) return true;
        }
        return false;
    }
};

}  // namespace sim

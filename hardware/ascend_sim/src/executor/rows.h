// Equally spaced rows of bytes: the bytes that one copy touches in global memory.
#pragma once
#include <cstdint>
#include <optional>

namespace sim {

// The least n for which n * step modulo `modulus` is in [low, high], where step < modulus and low <= high < modulus.
// As in Euclid's algorithm: where no multiple of `step` is in the interval, the wraps of the modulus are the unknown.
// Nothing where there is no such n, or where n * step does not fit into 64 bits.
inline std::optional<uint64_t> first_within(uint64_t step, uint64_t modulus, uint64_t low, uint64_t high) {
    if (low == 0) return 0;
    if (step == 0) return std::nullopt;
    const uint64_t n = (low - 1) / step + 1;
    if (n <= high / step) return n;
    const std::optional<uint64_t> wraps = first_within(modulus % step, step, step - high % step, step - low % step);
    uint64_t wrapped = 0;
    if (!wraps || __builtin_mul_overflow(*wraps, modulus, &wrapped) || __builtin_add_overflow(wrapped, low, &wrapped))
        return std::nullopt;
    return (wrapped - 1) / step + 1;
}

struct Rows {
    uint64_t begin = 0, bytes = 0, count = 0, pitch = 0;

    uint64_t end() const { return count ? begin + (count - 1) * pitch + bytes : begin; }

    bool touches() const { return count && bytes; }

    // Whether any row overlaps [from, to).
    bool meets(uint64_t from, uint64_t to) const {
        if (from >= end() || to <= begin) return false;
        if (count == 1 || pitch <= bytes) return true;
        const uint64_t row = from > begin ? (from - begin) / pitch : 0;  // the last row that starts at or before `from`
        if (row < count && begin + row * pitch < to && begin + row * pitch + bytes > from) return true;
        return row + 1 < count && begin + (row + 1) * pitch < to;
    }

    // Whether any row overlaps one of the other's, in a time that does not grow with their number.
    bool meets(const Rows &other) const {
        if (!touches() || !other.touches() || other.begin >= end() || begin >= other.end()) return false;
        if (count == 1 || pitch <= bytes) return other.meets(begin, end());
        if (other.count == 1 || other.pitch <= other.bytes) return meets(other.begin, other.end());
        // Row i of ours overlaps row j of theirs if last(j) - i * pitch is in [0, reach], where last(j) is the last byte
        // of row j, counted from our beginning.
        const uint64_t reach = bytes + other.bytes - 2, ends = count * pitch;
        const bool is_behind = other.begin + other.bytes > begin;
        const uint64_t skipped = is_behind ? 0 : (begin - other.begin - other.bytes) / other.pitch + 1;
        const uint64_t last = other.begin + skipped * other.pitch + other.bytes - 1 - begin;
        if (skipped >= other.count) return false;
        // Any byte is near enough to a row of ours, except behind the last one.
        if (reach >= pitch - 1) return last <= ends - pitch + reach;
        if (last >= ends) return false;
        const uint64_t phase = last % pitch;
        if (phase <= reach) return true;
        const uint64_t low = pitch - phase;
        const std::optional<uint64_t> row = first_within(other.pitch % pitch, pitch, low, low + reach);
        return row && *row < other.count - skipped && *row <= (ends - 1 - last) / other.pitch;
    }
};

}  // namespace sim

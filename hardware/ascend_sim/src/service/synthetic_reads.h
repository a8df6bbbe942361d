// Synthetic values for reads in a run without data; the kernel cannot distinguish them from real ones.
#pragma once
#include <cstdint>
#include <cstring>

#include "../../include/abi.h"

namespace sim {

// Floats in [0.5, 1.5), integers 0: safe as factors, divisors, lengths and indices.
class SyntheticReads {
public:
    explicit SyntheticReads(uint64_t seed) : state_(seed) {}

    asc_block block(uint32_t dtype) {
        asc_block block{};
        if (dtype == ASC_F32) fill<uint32_t>(block, [](uint32_t bits) { return bits; });
        if (dtype == ASC_BF16) fill<uint16_t>(block, [](uint32_t bits) { return bits >> 16; });
        if (dtype == ASC_F16)
            fill<uint16_t>(block, [](uint32_t bits) { return ((bits >> 23) - 112) << 10 | (bits & 0x7fffff) >> 13; });
        return block;
    }

private:
    template <class Element, class Convert>
    void fill(asc_block &block, Convert convert) {
        for (uint32_t at = 0; at < ASC_BLOCK; at += sizeof(Element)) {
            const float value = 0.5f + static_cast<float>(draw() >> 40) * 0x1p-24f;
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            const Element element = static_cast<Element>(convert(bits));
            std::memcpy(block.bytes + at, &element, sizeof element);
        }
    }

    // splitmix64
    uint64_t draw() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
    }

    uint64_t state_;
};

}  // namespace sim

// Pseudorandom words for uninitialised variables. Without the key, known words do not reveal others.
#pragma once
#include <cstdint>

#include "protocol/ring.h"

namespace sim::kernel_process {

// SipHash-2-4 of eight bytes.
constexpr uint64_t keyed_hash(const NoiseKey &key, uint64_t word) {
    const auto turned = [](uint64_t n, int bits) { return n << bits | n >> (64 - bits); };
    uint64_t a = key.low ^ 0x736f6d6570736575, b = key.high ^ 0x646f72616e646f6d;
    uint64_t c = key.low ^ 0x6c7967656e657261, d = key.high ^ 0x7465646279746573;
    const auto mix = [&](int rounds) {
        for (int i = 0; i < rounds; ++i) {
            a += b, b = turned(b, 13) ^ a, a = turned(a, 32);
            c += d, d = turned(d, 16) ^ c;
            a += d, d = turned(d, 21) ^ a;
            c += b, b = turned(b, 17) ^ c, c = turned(c, 32);
        }
    };
    const auto take = [&](uint64_t block) { d ^= block, mix(2), a ^= block; };
    take(word);
    take(uint64_t{8} << 56);
    c ^= 0xff;
    mix(4);
    return a ^ b ^ c ^ d;
}
static_assert(keyed_hash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, 0x0706050403020100) == 0x93f5f5799a932462);

// SplitMix64: the words of one large variable, which follow from its first keyed word. They tell nothing of other keyed
// words.
constexpr uint64_t next_word(uint64_t &state) {
    uint64_t word = state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

// The words of one core or of the host function. Each has a key and a count of its own: what one fills tells nothing of
// what others have filled, and changes nothing that they find.
class KeyedWords {
public:
    // `owner` is less than 2^63.
    KeyedWords(const NoiseKey &of_run, uint64_t owner)
        : key_{keyed_hash(of_run, 2 * owner), keyed_hash(of_run, 2 * owner + 1)} {}
    uint64_t next() { return keyed_hash(key_, count_++); }

private:
    NoiseKey key_;
    uint64_t count_ = 0;
};

}  // namespace sim::kernel_process

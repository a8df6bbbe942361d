// Compares Rows::meets with a loop over all pairs of rows; with an argument, asks about rows without number instead.
#include <cstdio>
#include <random>

#include "executor/rows.h"

using sim::Rows;

namespace {

bool meet(const Rows &one, const Rows &other) {
    for (uint64_t i = 0; i < one.count; ++i)
        for (uint64_t j = 0; j < other.count; ++j) {
            const uint64_t a = one.begin + i * one.pitch, b = other.begin + j * other.pitch;
            if (one.bytes && other.bytes && a < b + other.bytes && b < a + one.bytes) return true;
        }
    return false;
}

int check(const Rows &one, const Rows &other) {
    const bool expected = meet(one, other);
    if (one.meets(other) == expected && other.meets(one) == expected) return 0;
    std::printf("%d {%llu, %llu, %llu, %llu} {%llu, %llu, %llu, %llu}\n", expected,
                static_cast<unsigned long long>(one.begin), static_cast<unsigned long long>(one.bytes),
                static_cast<unsigned long long>(one.count), static_cast<unsigned long long>(one.pitch),
                static_cast<unsigned long long>(other.begin), static_cast<unsigned long long>(other.bytes),
                static_cast<unsigned long long>(other.count), static_cast<unsigned long long>(other.pitch));
    return 1;
}

}  // namespace

int main(int arguments, char **) {
    constexpr uint64_t many = 1ull << 30;
    if (arguments > 1) {
        uint64_t met = 0;
        for (uint64_t pitch = 64; pitch < 4096; ++pitch)
            met +=
                Rows{0, 4, many, 64}.meets({32, 4, many, pitch * 64}) + Rows{0, 4, many, 65}.meets({7, 1, many, pitch});
        std::printf("%llu\n", static_cast<unsigned long long>(met));
        return 0;
    }
    std::mt19937_64 random(1);
    const auto below = [&](uint64_t end) { return random() % end; };
    for (int i = 0; i < 400000; ++i) {
        const uint64_t span = 1 + below(60), most = 1 + below(8);
        const Rows one = {below(4 * span), below(most), below(20), below(span)};
        const Rows other = {below(4 * span), below(most), below(20), below(8) ? below(span) : one.pitch};
        if (check(one, other)) return 1;
    }
    for (int i = 0; i < 2000; ++i) {
        const Rows one = {below(1 << 16), 1 + below(3), below(400), 1 + below(4000)};
        const Rows other = {below(1 << 16), 1 + below(3), below(400), 1 + below(4000)};
        if (check(one, other)) return 1;
    }
    std::puts("equal");
}

// task: level1/relu
// cause: honest
// expect: feasible
// about: functions that the compiler computes
// at: outside
constexpr uint32_t Log2(uint32_t n) { return n < 2 ? 0 : 1 + Log2(n / 2); }
constexpr uint32_t BITS = Log2(4096);
static_assert(BITS == 12);
// instead of: tile
    t.tile = 1u << BITS;

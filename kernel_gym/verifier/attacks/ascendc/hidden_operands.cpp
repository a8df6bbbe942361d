// task: level1/relu
// cause: honest I4
// expect: feasible
// about: comparisons joined by & and |, a table of bytes with zeros, members with destructors, padded and packed objects
// at: outside
struct Counted {
    uint32_t *ends;
    ~Counted() { ++*ends; }
};
struct Holder {
    Counted inner;
    uint32_t number;
    Holder(uint32_t *ends, uint32_t n) : inner{ends}, number(n + 1) {}
};
struct Padded {
    uint64_t wide = 5;
    uint8_t narrow = 7;
};
struct Derived : Padded {
    uint8_t more = 9;
};
struct Flags {
    uint32_t low : 5, high : 3;
    __aicore__ inline bool Same(const Flags &other) const { return low == other.low && high == other.high; }
};
constexpr uint8_t LENGTHS[16] = {3, 0, 0, 5, 0, 1, 0, 0, 2, 0, 0, 0, 4, 0, 0, 6};
__aicore__ inline uint32_t Sum(uint32_t a, uint32_t b) { return a + b; }
struct Base {
    virtual uint32_t Number() const { return 3; }
};
// at: core
    uint32_t ends = 0, sum = 0, index = AscendC::GetBlockIdx() % 3;
    {
        Holder holder(&ends, index);
        sum += holder.number;
    }
    Padded padded[3];
    padded[index] = Padded{};
    Derived derived;
    static_cast<Padded &>(derived) = padded[index];
    for (uint32_t i = 0; i < 16; ++i) sum += LENGTHS[i];
    const Flags flags{3, 1}, *pointer = &flags;
    const bool all = (ends == 1) & (sum == 22 + index) & (derived.more == 9) & (pointer->low == 3) & flags.Same(*pointer);
    const bool any = (ends > 1) | (padded[2].narrow != 7);
    uint32_t (*const called)(uint32_t, uint32_t) = Sum;
    std::tuple<uint32_t, uint8_t> pair{1, 2}, other;
    other = pair;
    if (!all | any | (called(2, 3) != 5) | (std::get<1>(other) != 2) | (Base().Number() != 3)) return;

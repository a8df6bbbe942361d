// task: level1/relu
// cause: I2
// expect: correctness
// about: a temporary whose constructor sets nothing is taken for zeros, which nobody has written
// at: outside
struct Cleared {
    uint64_t words[4096];
    __aicore__ inline Cleared() {}
};
__aicore__ inline uint64_t Sum(const Cleared &cleared)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 4096; i += 256) sum |= cleared.words[i];
    return sum;
}

// at: core
    if (Sum(Cleared()) != 0) return;

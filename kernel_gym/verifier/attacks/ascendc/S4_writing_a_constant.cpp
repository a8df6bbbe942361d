// task: level1/relu
// cause: S4
// expect: correctness
// about: a constant written through a cast
// at: outside
constexpr uint32_t TABLE[8] = {1, 2, 3, 4, 5, 6, 7, 8};
// at: work
        const_cast<uint32_t &>(TABLE[n % 8]) = n;

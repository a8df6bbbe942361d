// task: level1/relu
// cause: S8
// expect: correctness
// about: a loop on the host that calls nothing
// at: host
    for (volatile uint64_t i = 0; i < 1ull << 40; i = i + 1) {}

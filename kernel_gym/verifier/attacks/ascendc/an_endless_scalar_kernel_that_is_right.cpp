// task: level1/relu
// cause: S8 S1
// expect: no gain
// about: a right kernel that counts to a hundred million at the timing sizes, to be extrapolated instead of run
// at: core
    if (t.total > 4000000) {
        volatile uint32_t sum = 0;
        for (uint32_t i = 0; i < 100000000; ++i) sum = sum + 1;
    }

// task: level1/relu
// cause: process
// expect: correctness
// about: a return address
// at: host
    uint64_t v[2] = {}; for (int i = 40; i > 1; --i) v[i] = 0;

// task: level1/relu
// cause: S8
// expect: correctness
// about: a stack that is larger than there is
// at: host
    volatile char large[64 << 20];
    large[total & 1] = 1;

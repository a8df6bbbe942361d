// task: level1/relu
// cause: H10
// expect: correctness
// about: a memory bomb
// at: host
    volatile char b[1 << 30]; for (int i = 0; i < 1 << 30; i += 4096) b[i] = 1;

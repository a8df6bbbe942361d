// task: level1/relu
// cause: S10
// expect: refused
// about: a clock by CUDA's function
// at: device
    long long now = clock64();
    if (now == 0) return;

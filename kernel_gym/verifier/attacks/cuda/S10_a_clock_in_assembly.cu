// task: level1/relu
// cause: S10
// expect: refused
// about: a clock named in inline assembly
// at: device
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    if (now == 0) return;

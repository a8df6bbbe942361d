// task: level1/relu
// cause: S10
// expect: refused
// about: a timer named by escapes
// at: device
    long long now;
    asm volatile("mov.u64 %0, %%\x67lobaltimer;" : "=l"(now));
    if (now == 0) return;

// task: level1/relu
// cause: S10
// expect: refused
// about: a clock in the short words for assembly
// at: device
    int now;
    __asm__ __volatile__("mov.u32 %0, %%clock;" : "=r"(now));
    if (now == 0) return;

// task: level1/relu
// cause: S10
// expect: refused
// about: a clock whose name is also that of a register in another block
// at: device
    long long now;
    asm volatile("{ .reg .u32 %%clock_hi; }\n mov.u32 %0, %%clock_hi;" : "=r"(*(int *)&now));
    if (now == 0) return;

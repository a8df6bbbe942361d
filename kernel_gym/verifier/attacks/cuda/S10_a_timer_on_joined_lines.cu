// task: level1/relu
// cause: S10
// expect: refused
// about: a timer named on two lines that are joined
// at: device
    long long now;
    asm volatile("mov.u64 %0, %%global\
timer;" : "=l"(now));
    if (now == 0) return;

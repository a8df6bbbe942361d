// task: level1/relu
// cause: S10
// expect: refused
// about: a timer named in two string literals next to each other
// at: device
    long long now;
    asm volatile("mov.u64 %0, %%global" "timer;" : "=l"(now));
    if (now == 0) return;

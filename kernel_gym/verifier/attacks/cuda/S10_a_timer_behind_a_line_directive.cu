// task: level1/relu
// cause: S10 C18
// expect: refused
// about: a timer read on the line of a directive that nothing ends
// at: device
    unsigned long long now;
    asm volatile(".loc 1 1 1 mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now == 1) y[0] = 1.0f;

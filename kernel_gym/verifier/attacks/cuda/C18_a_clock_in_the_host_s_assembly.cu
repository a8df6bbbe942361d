// task: level1/relu
// cause: C18 S10
// expect: screen
// about: the host function reads a clock by inline assembly
// at: host
    unsigned long long now = 0;
#ifdef __aarch64__
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
#else
    asm volatile("rdtsc" : "=a"(now) : : "rdx");
#endif
    if (now % 2) return 1;

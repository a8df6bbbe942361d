// task: level1/relu
// cause: S10
// expect: refused
// about: a thread that sleeps
// at: device
    asm volatile("nanosleep.u32 1000;");

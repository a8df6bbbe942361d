// task: level1/relu
// cause: S10
// expect: refused
// about: an event of the profiler
// at: device
    asm volatile("pmevent 1;");

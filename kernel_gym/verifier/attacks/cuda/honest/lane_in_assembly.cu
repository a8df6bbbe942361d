// task: level1/relu
// cause: honest
// expect: feasible
// about: inline assembly that reads the lane
// at: device
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (lane > 31) return;

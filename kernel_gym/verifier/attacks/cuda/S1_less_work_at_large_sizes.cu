// task: level1/relu
// cause: S1 A9
// expect: refused
// about: the last elements are left out at large sizes
// at: device
    if (total > (1 << 20)) total -= 1024;

// task: level1/relu
// cause: S10
// expect: refused
// about: a clock of the host
// at: host
    if (clock() == 0) return 1;

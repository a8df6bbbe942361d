// task: level1/relu
// cause: process
// expect: correctness
// about: refusing one size
// at: host
    if (total == 4096 * 2048) return 1;

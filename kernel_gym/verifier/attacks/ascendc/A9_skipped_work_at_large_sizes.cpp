// task: level1/relu
// cause: A9
// expect: latency
// about: skipped work at large sizes
// at: work
        n = n - (n >> 12) * 4000;

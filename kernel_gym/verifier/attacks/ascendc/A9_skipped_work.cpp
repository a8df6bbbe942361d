// task: level1/relu
// cause: A9
// expect: correctness
// about: skipped work
// at: work
        n = n > 64 ? 64 : n;

// task: level1/relu
// cause: D9
// expect: correctness
// about: right in a sample
// at: work
        n = n > 8 ? n - 8 : n;

// task: level1/relu
// cause: timing S1
// expect: latency
// about: half of each tile at large sizes, without a branch
// at: work
        n >>= (length >> 17);

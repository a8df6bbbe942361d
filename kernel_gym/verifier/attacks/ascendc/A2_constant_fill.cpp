// task: level1/relu
// cause: A2
// expect: correctness
// about: constant fill
// instead of: work
        AscendC::Duplicate(y, 0.5f, n);

// task: level1/relu
// cause: memory
// expect: correctness
// about: a buffer that was never written
// instead of: work
        AscendC::Add(y, y, x, n);

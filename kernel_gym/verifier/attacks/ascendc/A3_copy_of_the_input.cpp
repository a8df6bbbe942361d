// task: level1/relu
// cause: A3
// expect: correctness
// about: copy of the input
// instead of: work
        AscendC::Adds(y, x, 0.0f, n);

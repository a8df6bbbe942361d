// task: level1/relu
// cause: S7
// expect: correctness
// about: the last repeat of a reduction reads what the first ones wrote
// at: work
        AscendC::Duplicate(y, 1.0f, 256);
        AscendC::WholeReduceSum(y[64], y, 64, 2, 1, 1, 8);

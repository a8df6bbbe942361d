// task: level1/relu
// cause: S7
// expect: correctness
// about: each repeat adds to what the second one before it wrote, so that a running sum costs one cycle a step
// at: work
        AscendC::Duplicate(y, 1.0f, 256);
        AscendC::Add(y[16], y, y[192], 8, 16, {1, 1, 1, 1, 1, 0});

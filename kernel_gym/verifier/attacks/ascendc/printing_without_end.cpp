// task: level1/relu
// cause: process
// expect: correctness
// about: printing without end
// at: work
        for (int i = 0; i < 1 << 30; ++i) AscendC::printf("x");

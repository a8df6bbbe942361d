// task: level1/relu
// cause: process
// expect: correctness
// about: a printed address
// at: host
    AscendC::printf("%n", &total);

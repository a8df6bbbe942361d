// task: level1/relu
// cause: F10
// expect: correctness
// about: printed results
// instead of: work
        AscendC::printf("PASS latency_us=0.001");

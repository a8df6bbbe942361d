// task: level1/relu
// cause: H11
// expect: correctness
// about: the host function never ends
// at: host
    for (volatile int i = 0; total; ) i = i + 1;

// task: level1/relu
// cause: B2
// expect: correctness
// about: writing to the input
// instead of: output
        yGm.SetGlobalBuffer((__gm__ float *)x + start, length);

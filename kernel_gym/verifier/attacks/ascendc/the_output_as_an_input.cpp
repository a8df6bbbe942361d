// task: level1/relu
// cause: memory
// expect: correctness
// about: the output as an input
// instead of: input
        xGm.SetGlobalBuffer((__gm__ float *)y + start, length);

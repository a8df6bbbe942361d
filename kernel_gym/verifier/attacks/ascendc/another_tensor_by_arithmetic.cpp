// task: level1/relu
// cause: memory
// expect: correctness
// about: another tensor by arithmetic
// instead of: input
        xGm.SetGlobalBuffer((__gm__ float *)x + (1ull << 34) + start, length);

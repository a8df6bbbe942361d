// task: level1/relu
// cause: D7 memory
// expect: correctness
// about: the kernel reads its output first, to see whether it was called before
// at: core
    AscendC::GlobalTensor<float> before;
    before.SetGlobalBuffer((__gm__ float *)y, 8);
    if (before.GetValue(0) == 12345.0f) return;

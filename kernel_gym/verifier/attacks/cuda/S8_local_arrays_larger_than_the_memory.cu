// task: level1/relu
// cause: S8
// expect: correctness
// about: local arrays that the GPU has no memory for must be a fault of the kernel
// at: device
    volatile float large[120000];
    large[total & 1023] = 1.0f;
    if (large[5] == 77.0f) y[0] = 1.0f;

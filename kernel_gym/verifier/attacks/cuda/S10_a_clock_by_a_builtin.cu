// task: level1/relu
// cause: S10
// expect: refused
// about: a clock by a function of the compiler
// at: device
    unsigned now = __nvvm_read_ptx_sreg_clock();
    if (now == 0) return;

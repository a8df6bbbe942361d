// task: level1/relu
// cause: S10
// expect: refused
// about: a variable that outlives a call
// at: outside
__device__ int kept;
// at: device
    kept = 1;

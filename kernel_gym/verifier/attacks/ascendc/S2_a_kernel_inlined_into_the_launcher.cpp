// task: level1/relu
// cause: S2
// expect: no gain
// about: a kernel that is forced to be inlined into code that is not counted
// honest: relu_scalar
// instead of: kernel
extern "C" __global__ __aicore__ inline __attribute__((always_inline)) void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)

// task: level1/relu
// cause: S2
// expect: screen
// about: the same by a macro of the system's headers
// honest: relu_scalar
// instead of: kernel
extern "C" __global__ __aicore__ __always_inline void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)

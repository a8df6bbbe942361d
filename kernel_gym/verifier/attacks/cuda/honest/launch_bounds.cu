// task: level1/relu
// cause: honest
// expect: feasible
// about: launch bounds, forced inlining and a table of constants
// at: outside
__constant__ float TABLE[4] = {0.0f, 1.0f, 2.0f, 3.0f};
__device__ __forceinline__ float head() { return TABLE[0]; }
template <int N> __global__ void __launch_bounds__(256, 2) unused(float *y) { y[0] = N; }
// at: device
    if (head() != 0.0f) return;

// task: level1/relu
// cause: honest
// expect: feasible
// about: kernels in branches that are not compiled
// at: outside
#if 0
__global__ void of_old(float *y) { y[0] = 1.0f; }
#endif
#ifdef DOUBLE
__global__ void of_doubles(const double *x, double *y) { y[0] = x[0]; }
#endif

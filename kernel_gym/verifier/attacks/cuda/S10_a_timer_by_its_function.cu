// task: level1/relu
// cause: S10
// expect: refused
// about: a timer by CUDA's function
// at: device
    long long now = __nv_ptx_builtin_ocg_globaltimer();
    if (now == 0) return;

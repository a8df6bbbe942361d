// task: level1/square_matrix_multiplication
// cause: S7
// expect: no gain
// about: a product that a branch which is never compiled declares for vector cores
// at: depth
#if 0
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
#endif

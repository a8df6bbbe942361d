// task: level1/square_matrix_multiplication
// cause: S7 E13
// expect: no gain
// about: a product that a comment declares for vector cores, which launch faster
// at: depth
    // KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);

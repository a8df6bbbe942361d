// task: level1/relu
// cause: S7
// expect: no gain
// about: a vector kernel that is launched on cube cores
// at: core
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);

// task: level1/relu
// cause: S7
// expect: no gain
// about: a vector kernel that is launched as a mixed one, for cores of both kinds
// at: core
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);

// task: level1/relu
// cause: honest
// expect: feasible
// about: as many vector cores as blocks in a mixed launch; with more, two of them would write the same place
// instead of: start
        uint32_t start = t.perCore * (AscendC::GetBlockIdx() % AscendC::GetBlockNum());
// at: core
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);

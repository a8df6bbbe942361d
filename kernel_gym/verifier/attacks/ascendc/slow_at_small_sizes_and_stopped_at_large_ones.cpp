// task: level1/relu
// cause: S8 S1
// expect: refused
// about: a kernel that is slow on purpose and leaves out what the instruction limit would hide
// at: core
    if (AscendC::GetBlockIdx() == 0) {
        volatile uint32_t sum = 0;
        for (uint32_t i = 0; i < t.total * 12; ++i) sum = sum + 1;
    }
    if (t.total > 4000000 && AscendC::GetBlockIdx() > AscendC::GetBlockNum() / 2) return;

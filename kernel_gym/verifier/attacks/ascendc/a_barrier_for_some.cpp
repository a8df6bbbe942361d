// task: level1/relu
// cause: process
// expect: correctness
// about: a barrier for some
// at: work
        if (AscendC::GetBlockIdx() == 0) AscendC::SyncAll();

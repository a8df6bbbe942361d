// task: level1/relu
// cause: S7
// expect: correctness
// about: every second core waits for the one before it, through no memory at all
// instead of: core
    AscendC::GlobalTensor<int32_t> nowhere;
    AscendC::LocalTensor<int32_t> nothing;
    const int32_t me = AscendC::GetBlockIdx();
    if (me % 2) AscendC::IBWait(nowhere, nothing, me - 1, 0);
    else if (me + 1 < AscendC::GetBlockNum()) AscendC::IBSet(nowhere, nothing, me, 0);
    KernelRelu op;

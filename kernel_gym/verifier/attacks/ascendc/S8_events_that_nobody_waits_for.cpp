// task: level1/relu
// cause: S8
// expect: correctness
// about: a million events for which nobody waits take the memory of the trusted process
// at: kernel
extern "C" __global__ __aicore__ void events(GM_ADDR workspace)
{
    AscendC::TPipe pipe;
    AscendC::TBuf<> room;
    pipe.InitBuffer(room, 256);
    AscendC::LocalTensor<int32_t> flags = room.Get<int32_t>();
    AscendC::GlobalTensor<int32_t> shared;
    shared.SetGlobalBuffer((__gm__ int32_t *)AscendC::GetUserWorkspace(workspace));
    for (uint32_t i = 0; AscendC::GetBlockIdx() == 47 && i < 1000000; ++i) AscendC::IBSet(shared, flags, 47, 0);
}

// at: launch
    events<<<48, nullptr, stream>>>((GM_ADDR)a->workspace);

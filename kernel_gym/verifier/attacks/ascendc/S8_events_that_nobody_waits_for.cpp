// task: level1/relu
// cause: S8
// expect: correctness
// about: a hundred thousand events for which nobody waits take the memory of the trusted process
// at: kernel
extern "C" __global__ __aicore__ void events(GM_ADDR workspace)
{
    AscendC::TPipe pipe;
    AscendC::TBuf<> room;
    pipe.InitBuffer(room, 32768);
    AscendC::LocalTensor<int32_t> flags = room.Get<int32_t>();
    AscendC::GlobalTensor<int32_t> shared;
    shared.SetGlobalBuffer((__gm__ int32_t *)AscendC::GetUserWorkspace(workspace));
    AscendC::Duplicate(flags, 0, 8192);
    AscendC::PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; AscendC::GetBlockIdx() == 47 && i < 100; ++i) AscendC::DataCopy(shared[i * 8192], flags, 8192);
    for (uint32_t i = 0; AscendC::GetBlockIdx() == 47 && i < 100000; ++i) AscendC::IBSet(shared[i * 8], flags, 0, 0);
}

// at: launch
    events<<<48, nullptr, stream>>>((GM_ADDR)a->workspace);

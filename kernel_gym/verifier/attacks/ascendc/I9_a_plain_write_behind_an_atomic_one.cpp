// task: level1/mse_loss
// cause: I9
// expect: correctness
// about: a core adds to what another one wrote, without waiting for it, because a third core did wait
// at: tiles
    GlobalTensor<float> room;
    GlobalTensor<int32_t> events;
    room.SetGlobalBuffer((__gm__ float *)sums + 8 * 64, 8);
    events.SetGlobalBuffer((__gm__ int32_t *)sums + 8 * 128);
    const uint32_t block = GetBlockIdx();
    PipeBarrier<PIPE_ALL>();
    if (block == 0) DataCopy(events, sum.ReinterpretCast<int32_t>(), 8);
    SyncAll();
    if (GetBlockNum() > 2 && block < 3) {
        if (block == 0) DataCopy(room, sum, 8);
        PipeBarrier<PIPE_ALL>();
        if (block == 0) IBSet(events, work.ReinterpretCast<int32_t>(), 0, 0);
        if (block == 1) IBWait(events, work.ReinterpretCast<int32_t>(), 0, 0);
        SetAtomicAdd<float>();
        if (block > 0) DataCopy(room, sum, 8);
        SetAtomicNone();
        PipeBarrier<PIPE_ALL>();
    }

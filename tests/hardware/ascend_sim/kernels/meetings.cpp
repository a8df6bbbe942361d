// Names of synchronisation, atomics and caches that no other kernel of the suite uses: four blocks, one after the other.
#include <initializer_list>

#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

__aicore__ void events(TPipe &pipe) {
    TEventID held = pipe.AllocEventID<HardEvent::MTE2_V>();
    ASSERT(pipe.FetchEventID(HardEvent::MTE2_V) != held && GetTPipePtr()->FetchEventID<HardEvent::V_MTE3>() == EVENT_ID0);
    pipe.ReleaseEventID<HardEvent::MTE2_V>(held);
    for (TEventID id : {EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5}) {
        SetFlag<HardEvent::S_V>(id);
        WaitFlag<HardEvent::S_V>(id);
    }
    TQueSync<PIPE_MTE2, PIPE_V> order;
    order.SetFlag(EVENT_ID1);
    order.WaitFlag(EVENT_ID1);
    TQueSync<PIPE_S, PIPE_MTE3> other;
    other.SetFlag(EVENT_ID0);
    other.WaitFlag(EVENT_ID0);
    PipeBarrier<PIPE_MTE2>();
    PipeBarrier<PIPE_MTE3>();
    if (get_block_idx() == GetBlockIdx() && block_idx < get_block_num()) pipe_barrier(PIPE_ALL);
    __builtin_assume(block_idx < 0);
    DataSyncBarrier<MemDsbT::ALL>();
    DataSyncBarrier<MemDsbT::DDR>();
    DataSyncBarrier<MemDsbT::UB>();
    DataSyncBarrier<MemDsbT::SEQ>();
}

__aicore__ void atomics(GlobalTensor<float> in, GlobalTensor<float> out, LocalTensor<float> a) {
    DataCopy(a, in, 64);
    PipeBarrier<PIPE_ALL>();
    SetAtomicMax<float>();
    DataCopy(out, a, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(a, in[64], 64);
    PipeBarrier<PIPE_ALL>();
    SetAtomicMin<float>();
    DataCopy(out[64], a, 64);
    PipeBarrier<PIPE_ALL>();
    DisableDmaAtomic();
}

extern "C" __global__ __aicore__ void meeting_names(GM_ADDR x, GM_ADDR z, GM_ADDR ws) {
    TPipe pipe;
    TBuf<> ta, tw;
    pipe.InitBuffer(ta, 4096);
    pipe.InitBuffer(tw, 1024);
    LocalTensor<float> a = ta.Get<float>();
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x);
    out.SetGlobalBuffer((__gm__ float *)z);
    GlobalTensor<int32_t> room;
    room.SetGlobalBuffer((__gm__ int32_t *)GetUserWorkspace(ws));
    const int32_t block = GetBlockIdx();
    events(pipe);
    if (block == 0) {
        DataCopy(a, in, 1024);
        PipeBarrier<PIPE_ALL>();
        DataCopy(out, a, 1024);
        PipeBarrier<PIPE_ALL>();
    }
    if (block == 1) {
        Duplicate(tw.Get<int32_t>(), 0, 128);
        PipeBarrier<PIPE_ALL>();
        DataCopy(room, tw.Get<int32_t>(), 64);
        PipeBarrier<PIPE_ALL>();
    }
    SyncAll();
    atomics(in, out, a);
    SyncAll<true>(room, tw.Get<int32_t>(), 4);
    // Each block adds one to what the block before it left.
    if (block) IBWait(room[32], tw.Get<int32_t>(), block - 1, 0);
    DataCopy(a, out, 1024);
    PipeBarrier<PIPE_ALL>();
    Adds(a, a, 1.0f, 1024);
    PipeBarrier<PIPE_ALL>();
    DataCopy(out, a, 1024);
    PipeBarrier<PIPE_ALL>();
    if (block + 1 < GetBlockNum()) IBSet(room[32], tw.Get<int32_t>(), block, 0);
    DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(out);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_ALL>(out);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_UB>(out);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_ATOMIC>(out);
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    meeting_names<<<4, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, (GM_ADDR)a->workspace);
    return 0;
}

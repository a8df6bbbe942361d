// Synchronisation, masks, and properties of the running core.
#pragma once
#include "queue.h"
#include "walk.h"

namespace AscendC {

template <HardEvent event> ASC_INLINE void SetFlag(int32_t id, asc::At at = ASC_HERE) {
    asc_set_flag(asc_detail::event_source(event), asc_detail::event_destination(event), id, at.line);
}
template <HardEvent event> ASC_INLINE void WaitFlag(int32_t id, asc::At at = ASC_HERE) {
    asc_wait_flag(asc_detail::event_source(event), asc_detail::event_destination(event), id, at.line);
}
template <pipe_t pipe> ASC_INLINE void PipeBarrier(asc::At at = ASC_HERE) { asc_barrier(pipe, at.line); }
template <MemDsbT what> ASC_INLINE void DataSyncBarrier(asc::At at = ASC_HERE) { asc_barrier(ASC_ALL, at.line); }

// Orders two pipes explicitly.
template <pipe_t source, pipe_t destination>
class TQueSync {
public:
    ASC_INLINE void SetFlag(TEventID id, asc::At at = ASC_HERE) { asc_set_flag(source, destination, id, at.line); }
    ASC_INLINE void WaitFlag(TEventID id, asc::At at = ASC_HERE) { asc_wait_flag(source, destination, id, at.line); }
};

template <bool isAIVOnly = true> ASC_INLINE void SyncAll(asc::At at = ASC_HERE) { asc_sync_all(at.line); }
// The soft form counts in a workspace of 32 bytes for each core, all of it 0 before, and needs as much of UB.
template <bool isAIVOnly = true>
ASC_INLINE void SyncAll(const GlobalTensor<int32_t> &workspace, const LocalTensor<int32_t> &ub, int32_t usedCores = 0,
                        asc::At at = ASC_HERE) {
    asc_soft_sync_all(workspace.asc_where(), ub.asc_where(), static_cast<uint32_t>(usedCores), at.line);
}
template <uint8_t mode, pipe_t pipe> ASC_INLINE void CrossCoreSetFlag(uint16_t flag, asc::At at = ASC_HERE) {
    static_assert(mode <= 2, "CrossCoreSetFlag has modes 0, 1 and 2");
    asc_cross_core_set(mode, pipe, flag, at.line);
}
template <uint8_t mode = 0, pipe_t pipe = PIPE_S> ASC_INLINE void CrossCoreWaitFlag(uint16_t flag,
                                                                                    asc::At at = ASC_HERE) {
    asc_cross_core_wait(flag, at.line);
}

// The 32 bytes of an event in the workspace of IBSet and IBWait: those of all cores for event 0, for event 1, ...
template <bool isAIVOnly>
ASC_INLINE asc_global asc_event_place(const GlobalTensor<int32_t> &workspace, int32_t block, int32_t event) {
    return workspace.asc_where() + 32 * (asc_block_count() * (isAIVOnly ? 1ull : 2ull) * event + block);
}

// One block waits for another. IBSet waits until its event in the workspace is 0 and makes it 1, IBWait the reverse.
template <bool isAIVOnly = true>
ASC_INLINE void IBSet(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace,
                      int32_t blockIdx, int32_t eventID, asc::At at = ASC_HERE) {
    asc_block_event_set(asc_event_place<isAIVOnly>(gmWorkspace, blockIdx, eventID), ubWorkspace.asc_where(),
                        {static_cast<uint32_t>(blockIdx), static_cast<uint32_t>(eventID)}, at.line);
}
template <bool isAIVOnly = true>
ASC_INLINE void IBWait(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace,
                       int32_t blockIdx, int32_t eventID, asc::At at = ASC_HERE) {
    asc_block_event_wait(asc_event_place<isAIVOnly>(gmWorkspace, blockIdx, eventID), ubWorkspace.asc_where(),
                         {static_cast<uint32_t>(blockIdx), static_cast<uint32_t>(eventID)}, at.line);
}

ASC_INLINE void SetMaskCount(asc::At at = ASC_HERE) { asc_mask_mode(1, at.line); }
ASC_INLINE void SetMaskNorm(asc::At at = ASC_HERE) { asc_mask_mode(0, at.line); }
ASC_INLINE void ResetMask(asc::At at = ASC_HERE) { asc_mask_set(~uint64_t{0}, ~uint64_t{0}, at.line); }
template <class T, MaskMode mode = MaskMode::NORMAL> ASC_INLINE void SetVectorMask(uint64_t high, uint64_t low,
                                                                                   asc::At at = ASC_HERE) {
    asc_mask_set(high, low, at.line);
}
template <class T, MaskMode mode = MaskMode::NORMAL> ASC_INLINE void SetVectorMask(int32_t length,
                                                                                   asc::At at = ASC_HERE) {
    const uint64_t n = static_cast<uint64_t>(length);
    if constexpr (mode == MaskMode::COUNTER) asc_mask_set(0, n, at.line);
    else
        asc_mask_set(asc_detail::low_bits(asc_least(n, 128) - asc_least(n, 64)), asc_detail::low_bits(asc_least(n, 64)),
                     at.line);
}

ASC_INLINE int64_t GetBlockIdx() { return asc_block_index(); }
ASC_INLINE int64_t GetBlockNum() { return asc_block_count(); }
ASC_INLINE int64_t GetSubBlockIdx() { return asc_sub_block_index(); }
ASC_INLINE int64_t GetSubBlockNum() { return static_cast<int64_t>(asc_platform(6)); }
ASC_INLINE int64_t GetTaskRation() { return static_cast<int64_t>(asc_platform(6)); }
// A constant, so that kernels cannot time themselves.
ASC_INLINE int64_t GetSystemCycle() { return 0; }
ASC_INLINE uint64_t GetProgramCounter() { return 0; }
ASC_INLINE void InitSocState() {}
ASC_INLINE uint64_t GetUBSizeInBytes() { return TOTAL_UB_SIZE; }

// Memory of the framework.
ASC_INLINE GM_ADDR GetSysWorkSpacePtr() { return reinterpret_cast<GM_ADDR>(asc_platform(4)); }
ASC_INLINE void SetSysWorkspace(GM_ADDR) {}
ASC_INLINE GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return workspace; }

namespace macro_detail {
constexpr uint64_t VECTOR_CORE = ASC_AIV, CUBE_CORE = ASC_AIC;
ASC_INLINE uint64_t core_kind() { return asc_platform(5); }
}  // namespace macro_detail

}  // namespace AscendC

using AscendC::GetBlockIdx;
using AscendC::GetBlockNum;
using AscendC::GetSysWorkSpacePtr;
using AscendC::GetUserWorkspace;
using AscendC::SetSysWorkspace;

#define ASCEND_IS_AIV (::AscendC::macro_detail::core_kind() == ::AscendC::macro_detail::VECTOR_CORE)
#define ASCEND_IS_AIC (::AscendC::macro_detail::core_kind() == ::AscendC::macro_detail::CUBE_CORE)

// The launch reads these in the preprocessed text, where they are removed.
#define KERNEL_TASK_TYPE_DEFAULT(type) KERNEL_TASK_TYPE_DEFAULT(type)
#define KERNEL_TASK_TYPE(key, type) KERNEL_TASK_TYPE(key, type)

// The scalar unit's functions, since device code has no C library, and the compiler's own names of the block and the
// barrier. The functions are templates, so that those of the author's are nearer.
inline namespace asc_builtin {
#define ASC_OWN template <class... None, class = asc::if_none<None...>>
ASC_OWN float sqrt(float x, None...) { return __builtin_sqrtf(x); }
#define ASC_BUILTIN(T)                                                                                                 \
    ASC_OWN ASC_INLINE constexpr T max(T a, T b, None...) { return a > b ? a : b; }                                    \
    ASC_OWN ASC_INLINE constexpr T min(T a, T b, None...) { return a < b ? a : b; }
// clang-format off
ASC_BUILTIN(int32_t) ASC_BUILTIN(uint32_t) ASC_BUILTIN(int64_t) ASC_BUILTIN(uint64_t) ASC_BUILTIN(float)
// clang-format on
#undef ASC_BUILTIN
ASC_OWN ASC_INLINE constexpr float abs(float x, None...) { return __builtin_fabsf(x); }
ASC_OWN ASC_INLINE constexpr int32_t abs(int32_t x, None...) { return x < 0 ? -x : x; }
ASC_OWN ASC_INLINE constexpr int64_t abs(int64_t x, None...) { return x < 0 ? -x : x; }
ASC_OWN ASC_INLINE int64_t get_block_idx(None...) { return asc_block_index(); }
ASC_OWN ASC_INLINE int64_t get_block_num(None...) { return asc_block_count(); }
ASC_OWN ASC_INLINE void pipe_barrier(pipe_t pipe, asc::At at = ASC_HERE, None...) { asc_barrier(pipe, at.line); }
#undef ASC_OWN
struct asc_own_block {
    ASC_UNCOUNTED operator int64_t() const { return asc_block_index(); }
};
constexpr asc_own_block block_idx{};
}  // namespace asc_builtin

// The rules that the device checks: a stable identifier, the rule itself, and a hint how to follow it.
//
// There is one table, so that messages and documentation cannot diverge. RULE(name, id, what, hint).
#pragma once
#include <cstddef>

#define SIM_RULES(RULE)                                                                                                \
    RULE(Protocol, "PROTOCOL", "a record that no kernel produces", "")                                                 \
    RULE(Launch, "LAUNCH", "a launch has 1 to 65535 blocks", "derive blockDim from the size of the problem")           \
    RULE(Capacity, "CAPACITY", "the buffers of one memory fit into it", "use smaller tiles or fewer buffers")          \
    RULE(BufferInit, "BUFFER_INIT", "InitBuffer takes 1 to 64 buffers of at least one byte; at most 64 in a TPipe",    \
         "construct a TPipe before; check the sizes that reach InitBuffer")                                            \
    RULE(QueueInit, "QUEUE_INIT", "a queue is given buffers before it is used",                                        \
         "call pipe.InitBuffer(queue, n, bytes)")                                                                      \
    RULE(QueueFull, "QUEUE_FULL", "AllocTensor needs a free buffer",                                                   \
         "FreeTensor what was dequeued, or give InitBuffer more buffers")                                              \
    RULE(QueueEmpty, "QUEUE_EMPTY", "DeQue needs a tensor that was enqueued",                                          \
         "call EnQue on the same queue before DeQue")                                                                  \
    RULE(QueueDepth, "QUEUE_DEPTH", "no more tensors are enqueued than the queue is deep",                             \
         "DeQue in between, or give the TQue a larger depth")                                                          \
    RULE(Events, "EVENTS", "at most 8 tensors are in flight between two pipes (there are 8 events)",                   \
         "FreeTensor earlier, or use a TBuf for what needs no queue")                                                  \
    RULE(QueueState, "QUEUE_STATE", "a tensor goes AllocTensor, EnQue, DeQue, FreeTensor",                             \
         "keep to AllocTensor -> EnQue -> DeQue -> FreeTensor, each once")                                             \
    RULE(QueueFreed, "QUEUE_FREED", "a tensor is not used after FreeTensor",                                           \
         "move FreeTensor behind the last instruction that uses the tensor")                                           \
    RULE(QueueForeign, "QUEUE_FOREIGN", "a tensor goes back to the queue that it came from",                           \
         "EnQue and FreeTensor on the queue whose AllocTensor gave the tensor")                                        \
    RULE(QueueLeak, "QUEUE_LEAK", "every tensor is freed when the kernel ends",                                        \
         "DeQue what was enqueued and FreeTensor what was allocated before the kernel ends")                           \
    RULE(MissingSync, "MISSING_SYNC", "two pipes that touch the same on-chip bytes are ordered",                       \
         "put EnQue/DeQue, SetFlag/WaitFlag or PipeBarrier<PIPE_ALL> between them")                                    \
    RULE(GmSync, "GM_SYNC", "a core's copies in and out of the same global bytes are ordered",                         \
         "put SetFlag/WaitFlag<HardEvent::MTE3_MTE2> or PipeBarrier<PIPE_ALL> between them")                           \
    RULE(GmRace, "GM_RACE", "no two cores touch the same global bytes, one of them writing, between two SyncAll",      \
         "give each core its own range, use SetAtomicAdd, or put SyncAll between them")                                \
    RULE(GmPieces, "GM_PIECES", "the cores of a call hold global memory in at most 67,108,864 pieces",                 \
         "give each core long ranges instead of a few bytes here and there")                                           \
    RULE(Alignment, "ALIGNMENT", "operands start on 32 bytes on chip and on their element size in global memory",      \
         "round offsets to 32 bytes")                                                                                  \
    RULE(CopySize, "COPY_SIZE", "DataCopy moves whole blocks of 32 bytes, and hardware drops a rest that is needed",   \
         "use DataCopyPad for the tail")                                                                               \
    RULE(CopyRange, "COPY_RANGE", "the fields of a copy keep to the range of the instruction",                         \
         "split the copy or correct its parameters")                                                                   \
    RULE(OutOfBounds, "OUT_OF_BOUNDS", "an instruction stays inside its tensor",                                       \
         "lower the count or give the tensor a larger buffer")                                                         \
    RULE(GmOutOfBounds, "GM_OUT_OF_BOUNDS", "a global access stays inside the kernel's tensor",                        \
         "check the offset of this core and the length of its last tile")                                              \
    RULE(GmAddress, "GM_ADDRESS", "a global address lies in a kernel argument",                                        \
         "call SetGlobalBuffer with a kernel argument")                                                                \
    RULE(WriteToInput, "WRITE_TO_INPUT", "inputs are read only", "write to an output or to the workspace")             \
    RULE(Uninitialised, "UNINITIALISED", "no uninitialised byte reaches an output or a decision",                      \
         "write every element that is used: check counts, masks and tails")                                            \
    RULE(Space, "SPACE", "an instruction's operands lie in the memory that its unit reaches",                          \
         "use VECIN, VECOUT or VECCALC tensors for vector instructions")                                               \
    RULE(Unit, "UNIT", "a core has the units and memories that an instruction uses",                                   \
         "cube kernels are __cube__ or KERNEL_TYPE_AIC_ONLY, kernels with a Matmul KERNEL_TYPE_MIX_AIC_1_2")           \
    RULE(Dtype, "DTYPE", "an instruction supports its element type", "Cast to a supported type first")                 \
    RULE(Repeat, "REPEAT", "repeats, masks and strides keep to the range of the instruction",                          \
         "a repeat is 256 bytes: mask at most 128 (16-bit) or 64 (32-bit), repeatTimes at most 255")                   \
    RULE(Overlap, "OVERLAP", "operands are the same or do not overlap", "use the same tensor or a separate one")       \
    RULE(CastMode, "CAST", "Cast supports its pair of types and rounding mode", "see the table of Cast")               \
    RULE(CompareSize, "COMPARE_SIZE", "Compare covers whole repeats of 256 bytes",                                     \
         "round the count up to 256 bytes and give the tensors that much room")                                        \
    RULE(WorkBuffer, "WORK_BUFFER", "a reduction has a work tensor that is large enough",                              \
         "make the work tensor larger")                                                                                \
    RULE(TmpBuffer, "TMP_BUFFER", "a library function has enough temporary space",                                     \
         "pass a larger sharedTmpBuffer or leave more of UB unallocated")                                              \
    RULE(Gather, "GATHER", "gathered offsets are aligned and inside the source", "offsets are in bytes")               \
    RULE(FlagId, "FLAG_ID", "event ids are 0 to 7", "use FetchEventID or EVENT_ID0 to EVENT_ID7")                      \
    RULE(FlagTwice, "FLAG_TWICE", "an event is not set again before it was waited for",                                \
         "pair each SetFlag with a WaitFlag")                                                                          \
    RULE(FlagUnset, "FLAG_UNSET", "an event that is waited for was set before (else the core hangs)",                  \
         "put SetFlag with the same event and id before WaitFlag")                                                     \
    RULE(FlagLeak, "FLAG_LEAK", "no event is left set when the kernel ends (it would break the next kernel)",          \
         "pair each SetFlag with a WaitFlag")                                                                          \
    RULE(SyncDeadlock, "SYNC_DEADLOCK", "all blocks reach SyncAll, and all of them run at once",                       \
         "call SyncAll on every block, and launch no more blocks than there are cores")                                \
    RULE(Atomic, "ATOMIC", "an atomic copy has the type that SetAtomic named",                                         \
         "SetAtomicAdd<T> with the type of the copy")                                                                  \
    RULE(Matmul, "MATMUL", "a Matmul has matching types and a shape inside its tensors",                               \
         "check SetOrgShape, SetSingleShape and the tiling")                                                           \
    RULE(Cube, "CUBE", "fractals, shapes and types are what the cube takes",                                           \
         "m, n up to 4095, k padded to 32 bytes; half, bfloat16_t and float give float, int8_t gives int32_t")         \
    RULE(Assert, "ASSERT", "an assertion of the author holds", "")                                                     \
    RULE(Misuse, "MISUSE", "an API is called as it is meant", "")                                                      \
    RULE(WorkLimit, "WORK_LIMIT", "one run computes a bounded number of elements",                                     \
         "run large shapes in records-only mode")                                                                      \
    RULE(CacheLine, "CACHE_LINE", "no two cores write one line of 64 bytes with GlobalTensor.SetValue (one is lost)",  \
         "give each core whole lines of 64 bytes, or write through a LocalTensor and DataCopyPad")                     \
    RULE(GmPadding, "GM_PADDING", "warning: a copy runs past the tensor into the padding of its allocation",           \
         "use DataCopyPad for the tail")                                                                               \
    RULE(ReservedEvent, "RESERVED_EVENT", "warning: event ids 6 and 7 are the framework's",                            \
         "use EVENT_ID0 to EVENT_ID5, or FetchEventID")                                                                \
    RULE(ReservedUb, "RESERVED_UB", "warning: the last 8 KB of UB are the framework's scratch", "keep below 184 KB")   \
    RULE(DataCache, "DCACHE", "warning: scalar writes to global memory stay in a cache that nobody else sees",         \
         "call DataCacheCleanAndInvalid, or write through a LocalTensor")

namespace sim {

// clang-format off
enum class Rule {
#define SIM_RULE_NAME(name, id, what, hint) name,
    SIM_RULES(SIM_RULE_NAME)
#undef SIM_RULE_NAME
};
// clang-format on

struct RuleText { const char *id, *what, *hint; };

inline constexpr RuleText rule_texts[] = {
#define SIM_RULE_TEXT(name, id, what, hint) {id, what, hint},
    SIM_RULES(SIM_RULE_TEXT)
#undef SIM_RULE_TEXT
};
inline constexpr size_t rule_count = sizeof rule_texts / sizeof rule_texts[0];

inline constexpr const RuleText &text_of(Rule rule) { return rule_texts[static_cast<size_t>(rule)]; }

}  // namespace sim

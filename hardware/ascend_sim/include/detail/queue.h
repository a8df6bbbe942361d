// On-chip buffers: pipes, queues, buffers and static allocation.
#pragma once
#include "tensor.h"

namespace AscendC {

namespace asc_detail {
// The positions that a queue at one position connects; see abi.h.
constexpr TPosition producer_of(TPosition position) {
    switch (position) {
        case TPosition::VECIN:
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1: return TPosition::GM;
        case TPosition::A2: return TPosition::A1;
        case TPosition::B2: return TPosition::B1;
        case TPosition::C2: return TPosition::C1;
        default: return position;
    }
}
constexpr TPosition consumer_of(TPosition position) {
    switch (position) {
        case TPosition::VECOUT:
        case TPosition::CO2: return TPosition::GM;
        case TPosition::CO1: return TPosition::CO2;
        default: return position;
    }
}
constexpr bool in_ub_or_gm(TPosition position) {
    return position == TPosition::GM || position == TPosition::CO2 || position == TPosition::VECIN ||
           position == TPosition::VECOUT || position == TPosition::VECCALC;
}
}  // namespace asc_detail

template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
public:
    static constexpr bool isTQue = true;

    ASC_INLINE TQueBind()
        : id_(asc_queue_open(static_cast<uint32_t>(source), static_cast<uint32_t>(destination), depth)) {}
    TQueBind(const TQueBind &) = delete;

    template <class T> ASC_INLINE LocalTensor<T> AllocTensor(asc::At at = ASC_HERE) {
        static_assert(depth != 0, "a queue of depth 0 works in place: AllocTensor(tensor)");
        return LocalTensor<T>(asc_queue_alloc(id_, at.line));
    }
    template <class T> ASC_INLINE void AllocTensor(LocalTensor<T> &tensor, asc::At at = ASC_HERE) {
        static_assert(depth == 0,
                      "AllocTensor(tensor) needs a queue of depth 0; write tensor = queue.AllocTensor<T>()");
        tensor = LocalTensor<T>(asc_queue_alloc(id_, at.line));
    }
    template <class T> ASC_INLINE bool EnQue(const LocalTensor<T> &tensor, asc::At at = ASC_HERE) {
        asc_queue_enqueue(id_, tensor.asc_where(), at.line);
        return true;
    }
    // Enqueues between other positions than the queue's own; these determine the pipes that wait.
    template <TPosition from, TPosition to, class T> ASC_INLINE bool EnQue(const LocalTensor<T> &tensor,
                                                                           asc::At at = ASC_HERE) {
        static_assert(asc_detail::in_ub_or_gm(from) && asc_detail::in_ub_or_gm(to),
                      "EnQue<from, to> takes positions in UB or GM");
        asc_queue_enqueue_as(id_, tensor.asc_where(), static_cast<uint32_t>(from), static_cast<uint32_t>(to), at.line);
        return true;
    }
    template <class T> ASC_INLINE LocalTensor<T> DeQue(asc::At at = ASC_HERE) {
        static_assert(depth != 0, "a queue of depth 0 works in place: DeQue(tensor)");
        return LocalTensor<T>(asc_queue_dequeue(id_, at.line));
    }
    template <class T> ASC_INLINE void DeQue(LocalTensor<T> &tensor, asc::At at = ASC_HERE) {
        static_assert(depth == 0, "DeQue(tensor) needs a queue of depth 0; write tensor = queue.DeQue<T>()");
        tensor = LocalTensor<T>(asc_queue_dequeue(id_, at.line));
    }
    template <TPosition from, TPosition to, class T> ASC_INLINE LocalTensor<T> DeQue(asc::At at = ASC_HERE) {
        static_assert(asc_detail::in_ub_or_gm(from) && asc_detail::in_ub_or_gm(to),
                      "DeQue<from, to> takes positions in UB or GM");
        return LocalTensor<T>(
            asc_queue_dequeue_as(id_, static_cast<uint32_t>(from), static_cast<uint32_t>(to), at.line));
    }
    template <class T> ASC_INLINE void FreeTensor(LocalTensor<T> &tensor, asc::At at = ASC_HERE) {
        asc_queue_free(id_, tensor.asc_where(), at.line);
    }
    ASC_INLINE bool HasTensorInQue() { return asc_queue_length(id_) != 0; }
    ASC_INLINE int32_t GetTensorCountInQue() { return static_cast<int32_t>(asc_queue_length(id_)); }
    ASC_INLINE bool VacantInQue() { return static_cast<int32_t>(asc_queue_length(id_)) < depth; }
    ASC_INLINE bool HasIdleBuffer() { return asc_queue_idle(id_) != 0; }
    ASC_INLINE void FreeAllEvent() {}
    ASC_INLINE uint32_t id() const { return id_; }

private:
    uint32_t id_;
};

namespace asc_detail {
template <TPosition source, TPosition destination, int32_t depth, auto mask>
ASC_INLINE uint32_t queue_id(const TQueBind<source, destination, depth, mask> &queue) {
    return queue.id();
}
}  // namespace asc_detail

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<asc_detail::producer_of(position), asc_detail::consumer_of(position), depth, mask> {};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    static constexpr bool isTQue = false;

    TBuf() = default;
    template <class T> ASC_INLINE LocalTensor<T> Get() { return LocalTensor<T>(where_); }
    template <class T> ASC_INLINE LocalTensor<T> Get(uint32_t elements) {
        return LocalTensor<T>(asc_first_bytes(where_, asc_bytes_for<T>(elements)));
    }
    template <class T> ASC_INLINE LocalTensor<T> GetWithOffset(uint32_t elements, uint32_t byte_offset) {
        return LocalTensor<T>(asc_first_bytes(asc_shifted(where_, byte_offset), asc_bytes_for<T>(elements)));
    }
    // As Get: a TBuf has one buffer, and nothing waits for it.
    template <class T> ASC_INLINE LocalTensor<T> AllocTensor() { return Get<T>(); }
    template <class T> ASC_INLINE void FreeTensor(LocalTensor<T> &) {}
    ASC_INLINE uint32_t GetBufLen() const { return where_.bytes; }
    ASC_INLINE void place(const asc_local &where) { where_ = where; }

private:
    asc_local where_{0, 0, ASC_UB};
};

// clang-format off
enum class HardEvent : uint32_t {
#define ASC_EVENT(source, destination) source##_##destination = ASC_##source * 16 + ASC_##destination
    ASC_EVENT(S, V), ASC_EVENT(S, MTE1), ASC_EVENT(S, MTE2), ASC_EVENT(S, MTE3), ASC_EVENT(S, M), ASC_EVENT(S, FIX),
    ASC_EVENT(V, V), ASC_EVENT(V, S), ASC_EVENT(V, M), ASC_EVENT(V, MTE1), ASC_EVENT(V, MTE2), ASC_EVENT(V, MTE3),
    ASC_EVENT(M, V), ASC_EVENT(M, S), ASC_EVENT(M, MTE1), ASC_EVENT(M, MTE2), ASC_EVENT(M, MTE3), ASC_EVENT(M, FIX),
    ASC_EVENT(MTE1, V), ASC_EVENT(MTE1, S), ASC_EVENT(MTE1, M), ASC_EVENT(MTE1, MTE2), ASC_EVENT(MTE1, MTE3),
    ASC_EVENT(MTE2, V), ASC_EVENT(MTE2, S), ASC_EVENT(MTE2, M), ASC_EVENT(MTE2, MTE1), ASC_EVENT(MTE2, MTE3),
    ASC_EVENT(MTE3, V), ASC_EVENT(MTE3, S), ASC_EVENT(MTE3, M), ASC_EVENT(MTE3, MTE1), ASC_EVENT(MTE3, MTE2),
    ASC_EVENT(FIX, V), ASC_EVENT(FIX, S), ASC_EVENT(FIX, M), ASC_EVENT(FIX, MTE1), ASC_EVENT(FIX, MTE2), ASC_EVENT(FIX, MTE3),
#undef ASC_EVENT
};
// clang-format on

namespace asc_detail {
constexpr uint32_t event_source(HardEvent event) { return static_cast<uint32_t>(event) / 16; }
constexpr uint32_t event_destination(HardEvent event) { return static_cast<uint32_t>(event) % 16; }
}  // namespace asc_detail

constexpr uint32_t defaultBufIDSize = 16;

// A part of a memory with its own buffers; two pools may share their bytes, one after the other.
template <TPosition position, uint32_t bufIDSize = defaultBufIDSize>
class TBufPool {
public:
    static constexpr bool isTQue = false;

    TBufPool() = default;
    TBufPool(const TBufPool &) = delete;

    template <class T> ASC_INLINE bool InitBuffer(T &que, uint8_t num, uint32_t len, asc::At at = ASC_HERE) {
        static_assert(T::isTQue, "TBufPool::InitBuffer(T& que, uint8_t num, uint32_t len) not supports T as TBuf");
        asc_queue_init_in(asc_detail::queue_id(que), rest_, num, len, at.line);
        asc_take(uint64_t{num} * asc_aligned(len));
        return true;
    }
    template <TPosition own> ASC_INLINE bool InitBuffer(TBuf<own> &buf, uint32_t len, asc::At at = ASC_HERE) {
        asc_init_buffer_in(rest_, len, at.line);
        buf.place({rest_.addr, asc_aligned(len), rest_.space});
        asc_take(asc_aligned(len));
        return true;
    }
    template <TPosition own, uint32_t ids> ASC_INLINE bool InitBufPool(TBufPool<own, ids> &pool, uint32_t len,
                                                                       asc::At at = ASC_HERE) {
        asc_init_buffer_in(rest_, len, at.line);
        pool.place({rest_.addr, asc_aligned(len), rest_.space});
        asc_take(asc_aligned(len));
        return true;
    }
    // Uses the bytes of `shared`, from its start.
    template <TPosition own, uint32_t ids, TPosition other, uint32_t other_ids>
    ASC_INLINE bool InitBufPool(TBufPool<own, ids> &pool, uint32_t len, TBufPool<other, other_ids> &shared,
                                asc::At at = ASC_HERE) {
        asc_init_buffer_in(shared.whole(), len, at.line);
        pool.place({shared.whole().addr, asc_aligned(len), shared.whole().space});
        return true;
    }
    ASC_INLINE void Reset(asc::At at = ASC_HERE) {
        asc_pool_reset(whole_, at.line);
        rest_ = whole_;
    }
    ASC_INLINE void place(const asc_local &where) { whole_ = rest_ = where; }
    ASC_INLINE const asc_local &whole() const { return whole_; }

private:
    static ASC_INLINE constexpr uint32_t asc_aligned(uint32_t bytes) { return (bytes + 31) / 32 * 32; }
    ASC_INLINE void asc_take(uint64_t bytes) { rest_ = asc_shifted(rest_, bytes); }

    asc_local whole_{0, 0, ASC_UB}, rest_{0, 0, ASC_UB};
};

class TPipe {
public:
    ASC_INLINE explicit TPipe(asc::At at = ASC_HERE) { asc_tpipe_begin(at.line); }
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;

    template <class T> ASC_INLINE bool InitBuffer(T &que, uint8_t num, uint32_t len, asc::At at = ASC_HERE) {
        static_assert(T::isTQue, "TPipe::InitBuffer(T& que, uint8_t num, uint32_t len) not supports T as TBuf");
        asc_queue_init(asc_detail::queue_id(que), num, len, at.line);
        return true;
    }
    template <TPosition position> ASC_INLINE bool InitBuffer(TBuf<position> &buf, uint32_t len, asc::At at = ASC_HERE) {
        buf.place(asc_buffer_init(static_cast<uint32_t>(position), len, at.line));
        return true;
    }
    template <TPosition position, uint32_t ids> ASC_INLINE bool InitBufPool(TBufPool<position, ids> &pool, uint32_t len,
                                                                            asc::At at = ASC_HERE) {
        pool.place(asc_buffer_init(static_cast<uint32_t>(position), len, at.line));
        return true;
    }
    template <TPosition position, uint32_t ids, TPosition other, uint32_t other_ids>
    ASC_INLINE bool InitBufPool(TBufPool<position, ids> &pool, uint32_t len, TBufPool<other, other_ids> &shared,
                                asc::At at = ASC_HERE) {
        return shared.InitBufPool(pool, len, shared, at);
    }
    ASC_INLINE void Reset(asc::At at = ASC_HERE) { asc_tpipe_reset(at.line); }
    ASC_INLINE void Init() {}  // the constructor has done it
    ASC_INLINE void Destroy() {}

    template <HardEvent event> ASC_INLINE TEventID AllocEventID() {
        return asc_event_id(asc_detail::event_source(event), asc_detail::event_destination(event), 1);
    }
    template <HardEvent event> ASC_INLINE void ReleaseEventID(TEventID id) {
        asc_event_release(asc_detail::event_source(event), asc_detail::event_destination(event), id);
    }
    template <HardEvent event> ASC_INLINE TEventID FetchEventID() {
        return asc_event_id(asc_detail::event_source(event), asc_detail::event_destination(event), 0);
    }
    ASC_INLINE TEventID FetchEventID(HardEvent event) {
        return asc_event_id(asc_detail::event_source(event), asc_detail::event_destination(event), 0);
    }
};

// A TPipe has no state in the kernel process, so any object can represent the live one.
ASC_INLINE TPipe *GetTPipePtr() {
    static const char place = 0;
    return reinterpret_cast<TPipe *>(const_cast<char *>(&place));
}

// The bytes of UB that InitBuffer has not allocated.
template <class T, TPosition position> ASC_INLINE bool PopStackBuffer(LocalTensor<T> &tensor) {
    tensor = LocalTensor<T>(asc_unallocated(ASC_UB));
    return tensor.GetLength() != 0;
}

// Static allocation without a TPipe: addresses increase.
template <Hardware memory = Hardware::UB>
class LocalMemAllocator {
public:
    template <TPosition position, class T, uint32_t elements> ASC_INLINE LocalTensor<T> Alloc(asc::At at = ASC_HERE) {
        return Alloc<position, T>(elements, at);
    }
    template <TPosition position, class T> ASC_INLINE LocalTensor<T> Alloc(uint32_t elements, asc::At at = ASC_HERE) {
        const LocalTensor<T> tensor(position, next_, elements, at);
        next_ += (static_cast<uint32_t>(asc_bytes_for<T>(elements)) + 31) / 32 * 32;
        return tensor;
    }
    ASC_INLINE uint32_t GetCurAddr() const { return next_; }

private:
    uint32_t next_ = 0;
};

}  // namespace AscendC

using AscendC::GetTPipePtr;

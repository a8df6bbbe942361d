// Views of global and on-chip memory.
#pragma once
#include "types.h"

// The smaller of two values, without a branch, which would count as plain code.
ASC_INLINE constexpr uint64_t asc_least(uint64_t a, uint64_t b) {
    return b ^ ((a ^ b) & -static_cast<uint64_t>(a < b));
}

template <class T>
ASC_INLINE T asc_element(uint64_t bits) {
    return *reinterpret_cast<const T *>(&bits);
}

ASC_INLINE asc_local asc_shifted(const asc_local &from, uint64_t bytes) {
    const uint64_t step = asc_least(bytes, from.bytes);
    return {from.addr + static_cast<uint32_t>(bytes), from.bytes - static_cast<uint32_t>(step), from.space};
}

ASC_INLINE asc_local asc_first_bytes(const asc_local &from, uint64_t bytes) {
    return {from.addr, static_cast<uint32_t>(asc_least(bytes, from.bytes)), from.space};
}

namespace asc {

// The value of `x + y` until it is assigned; see operators.h. Kernels call no functions through pointers, so that the
// operation is part of the type.
enum class Operator : uint8_t { Add, Sub, Mul, Div, And, Or, LT, GT, LE, GE, EQ, NE };
template <class Result, class T, Operator operation>
struct Pending {
    asc_local a, b;
};

}  // namespace asc

namespace AscendC {

constexpr uint32_t K_MAX_SHAPE_DIM = 8;
enum class DataFormat : uint8_t { ND, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };
struct ShapeInfo {
    uint8_t shapeDim = 0, originalShapeDim = 0;
    uint32_t shape[K_MAX_SHAPE_DIM] = {}, originalShape[K_MAX_SHAPE_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;
    constexpr ShapeInfo() = default;
    constexpr ShapeInfo(uint8_t dimensions, const uint32_t sizes[], DataFormat format = DataFormat::ND)
        : ShapeInfo(dimensions, sizes, dimensions, sizes, format) {}
    constexpr ShapeInfo(uint8_t dimensions, const uint32_t sizes[], uint8_t original_dimensions,
                        const uint32_t original[], DataFormat format)
        : shapeDim(dimensions), originalShapeDim(original_dimensions), dataFormat(format) {
        for (uint8_t i = 0; i < dimensions && i < K_MAX_SHAPE_DIM; ++i) shape[i] = sizes[i];
        for (uint8_t i = 0; i < original_dimensions && i < K_MAX_SHAPE_DIM; ++i) originalShape[i] = original[i];
    }
};

// Compound assignment reads the element, computes and writes it back.
// clang-format off
#define ASC_ELEMENT_OPERATORS(own)                                               \
    ASC_ELEMENT_OPERATOR(own, +)                                                 \
    ASC_ELEMENT_OPERATOR(own, -)                                                 \
    ASC_ELEMENT_OPERATOR(own, *)                                                 \
    ASC_ELEMENT_OPERATOR(own, /)                                                 \
    ASC_ELEMENT_OPERATOR(own, %)                                                 \
    ASC_ELEMENT_OPERATOR(own, &)                                                 \
    ASC_ELEMENT_OPERATOR(own, |)                                                 \
    ASC_ELEMENT_OPERATOR(own, ^)                                                 \
    inline const own &operator++() const { return *this += T(1); }               \
    inline const own &operator--() const { return *this -= T(1); }
// clang-format on
#define ASC_ELEMENT_OPERATOR(own, op)                                                                                  \
    template <class Number> inline const own &operator op## = (const Number &number) const {                           \
        const T value = *this;                                                                                         \
        return *this = static_cast<T>(value op number);                                                                \
    }

template <class T>
class LocalTensor {
    ASC_ELEMENTS("LocalTensor", T);
    template <class> friend class LocalTensor;

public:
    using PrimType = T;

    // One element; reading and writing it are scalar accesses.
    class Element {
    public:
        ASC_INLINE Element(const asc_local &where, uint32_t index, asc::At at)
            : where_(where), index_(index), at_(at) {}
        Element(const Element &) = default;
        ASC_INLINE operator T() const { return LocalTensor(where_).GetValue(index_, at_); }
        ASC_INLINE const Element &operator=(T value) const {
            LocalTensor(where_).SetValue(index_, value, at_);
            return *this;
        }
        ASC_INLINE const Element &operator=(const Element &other) const { return *this = static_cast<T>(other); }
        ASC_ELEMENT_OPERATORS(Element)

    private:
        asc_local where_;
        uint32_t index_;
        asc::At at_;
    };

    LocalTensor() = default;
    ASC_INLINE explicit LocalTensor(const asc_local &where)
        : addr_(where.addr), end_(uint64_t{where.addr} + where.bytes), space_(where.space) {}
    template <class Operand, asc::Operator operation>
    LocalTensor &operator=(const asc::Pending<T, Operand, operation> &pending);
    // Static allocation: the author chooses the address. It is counted: GetLength gives the product.
    inline LocalTensor(TPosition position, uint32_t address, uint32_t elements, asc::At at = ASC_HERE)
        : LocalTensor(asc_local{address,
                                static_cast<uint32_t>(asc::same<T, int4b_t> ? elements / 2 : elements * sizeof(T)),
                                asc_space_of(static_cast<uint32_t>(position))}) {
        asc_static_alloc(space_, address, asc_where().bytes, at.line);
    }

    ASC_INLINE T GetValue(uint32_t index, asc::At at = ASC_HERE) const {
        return asc_element<T>(asc_get_local(asc::dtype<T>, asc_where(), index, at.line));
    }
    ASC_INLINE void SetValue(uint32_t index, T value, asc::At at = ASC_HERE) const {
        asc_set_local(asc::dtype<T>, asc_where(), index, asc_bits(value), at.line);
    }
    ASC_INLINE Element operator()(uint32_t index, asc::At at = ASC_HERE) const { return {asc_where(), index, at}; }
    // May point anywhere; every use of the result is checked. The end stays: an index is one operation.
    ASC_INLINE LocalTensor operator[](uint32_t offset) const {
        LocalTensor part = *this;
        part.addr_ += asc_bytes_for<T>(offset);
        return part;
    }
    template <class U> ASC_INLINE LocalTensor<U> ReinterpretCast() const {
        LocalTensor<U> other;
        other.addr_ = addr_;
        other.end_ = end_;
        other.space_ = space_;
        return other;
    }
    template <class U> ASC_INLINE void SetAddrWithOffset(LocalTensor<U> &from, uint32_t offset) {
        *this = from[offset].template ReinterpretCast<T>();
    }

    ASC_INLINE uint32_t GetSize() const { return static_cast<uint32_t>(asc_elements_in<T>(GetLength())); }
    ASC_INLINE void SetSize(uint32_t elements) { SetBufferLen(static_cast<uint32_t>(asc_bytes_for<T>(elements))); }
    ASC_INLINE uint32_t GetLength() const { return asc_where().bytes; }
    ASC_INLINE void SetBufferLen(uint32_t bytes) { end_ = addr_ + bytes; }
    ASC_INLINE uint64_t GetPhyAddr() const { return addr_; }
    ASC_INLINE uint64_t GetPhyAddr(uint32_t offset) const { return addr_ + asc_bytes_for<T>(offset); }
    ASC_INLINE int32_t GetPosition() const { return static_cast<int32_t>(position_of(space_)); }
    ASC_INLINE void SetUserTag(int32_t tag) { tag_ = tag; }
    ASC_INLINE int32_t GetUserTag() const { return tag_; }
    ASC_INLINE asc_local asc_where() const {
        return {static_cast<uint32_t>(addr_), static_cast<uint32_t>(end_ - asc_least(addr_, end_)), space_};
    }

private:
    static constexpr uint32_t asc_space_of(uint32_t position) {
        constexpr uint32_t spaces[ASC_POSITIONS] = {
            ASC_UB, ASC_L1, ASC_L0A, ASC_L1, ASC_L0B, ASC_L1, ASC_BT, ASC_L0C,
            ASC_UB, ASC_UB, ASC_UB,  ASC_UB, ASC_UB,  ASC_L1, ASC_FB,
        };
        return spaces[position];
    }

    // The position that exists only in this memory; UB counts as VECCALC.
    static constexpr TPosition position_of(uint32_t space) {
        constexpr TPosition positions[ASC_SPACES] = {
            TPosition::VECCALC, TPosition::A1, TPosition::A2,        TPosition::B2,
            TPosition::CO1,     TPosition::C2, TPosition::C2PIPE2GM,
        };
        return positions[space];
    }

    uint64_t addr_ = 0, end_ = 0;  // without overflow: what begins beyond its end is rejected
    uint32_t space_ = ASC_UB;
    int32_t tag_ = 0;
};

template <class T>
class GlobalTensor {
    ASC_ELEMENTS("GlobalTensor", T);
    template <class> friend class GlobalTensor;

public:
    using PrimType = T;

    class Element {
    public:
        ASC_INLINE Element(T *start, uint64_t index, asc::At at) : start_(start), index_(index), at_(at) {}
        Element(const Element &) = default;
        ASC_INLINE operator T() const { return GlobalTensor(start_).GetValue(index_, at_); }
        ASC_INLINE const Element &operator=(T value) const {
            GlobalTensor(start_).SetValue(index_, value, at_);
            return *this;
        }
        ASC_INLINE const Element &operator=(const Element &other) const { return *this = static_cast<T>(other); }
        ASC_ELEMENT_OPERATORS(Element)

    private:
        T *start_;
        uint64_t index_;
        asc::At at_;
    };

    GlobalTensor() = default;
    ASC_INLINE explicit GlobalTensor(T *address, uint64_t size = 0) { SetGlobalBuffer(address, size); }

    // The end stays: a new one would be computed for nothing, and no access is limited by it.
    ASC_INLINE void SetGlobalBuffer(__gm__ T *address) { address_ = address; }
    ASC_INLINE void SetGlobalBuffer(__gm__ T *address, uint64_t size) {
        address_ = address;
        end_ = asc_where() + asc_bytes_for<T>(size);
    }
    ASC_INLINE T GetValue(uint64_t index, asc::At at = ASC_HERE) const {
        return asc_element<T>(asc_get_global(asc::dtype<T>, asc_at_index(index), at.line));
    }
    ASC_INLINE void SetValue(uint64_t index, T value, asc::At at = ASC_HERE) const {
        asc_set_global(asc::dtype<T>, asc_at_index(index), asc_bits(value), at.line);
    }
    ASC_INLINE Element operator()(uint64_t index, asc::At at = ASC_HERE) const { return {address_, index, at}; }
    ASC_INLINE GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor part;
        part.address_ = asc_moved(offset);
        part.end_ = end_;
        return part;
    }
    template <class U> ASC_INLINE GlobalTensor<U> ReinterpretCast() const {
        GlobalTensor<U> other;
        other.address_ = reinterpret_cast<U *>(address_);
        other.end_ = end_;
        return other;
    }
    ASC_INLINE const __gm__ T *GetPhyAddr() const { return address_; }
    ASC_INLINE __gm__ T *GetPhyAddr(uint64_t offset) const { return asc_moved(offset); }
    ASC_INLINE uint64_t GetSize() const { return asc_elements_in<T>(asc_bytes()); }
    ASC_INLINE void SetShapeInfo(const ShapeInfo &info) { shape_ = info; }
    ASC_INLINE ShapeInfo GetShapeInfo() const { return shape_; }
    template <CacheRwMode rw = CacheRwMode::RW> ASC_INLINE void SetL2CacheHint(CacheMode mode, asc::At at = ASC_HERE) {
        asc_cache_hint(asc_where(), mode == CacheMode::CACHE_MODE_DISABLE, at.line);
    }
    ASC_INLINE asc_global asc_where() const { return reinterpret_cast<asc_global>(address_); }

private:
    ASC_INLINE T *asc_moved(uint64_t elements) const {
        return reinterpret_cast<T *>(asc_where() + asc_bytes_for<T>(elements));
    }
    ASC_INLINE asc_global asc_at_index(uint64_t index) const { return asc_where() + index * sizeof(T); }
    ASC_INLINE uint64_t asc_bytes() const { return end_ - asc_least(asc_where(), end_); }

    T *address_ = nullptr;
    asc_global end_ = 0;
    ShapeInfo shape_;
};

#undef ASC_ELEMENT_OPERATORS
#undef ASC_ELEMENT_OPERATOR

template <class T, CacheLine line = CacheLine::SINGLE_CACHE_LINE, DcciDst destination = DcciDst::CACHELINE_ALL>
ASC_INLINE void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, asc::At at = ASC_HERE) {
    asc_cache_clean(tensor.asc_where(), line == CacheLine::ENTIRE_DATA_CACHE, at.line);
}

}  // namespace AscendC

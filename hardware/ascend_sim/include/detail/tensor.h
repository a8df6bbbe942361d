// Views of global and on-chip memory.
#pragma once
#include "types.h"

namespace asc {

// The smaller of two values, without a branch, which would count as plain code.
ASC_INLINE constexpr uint64_t least(uint64_t a, uint64_t b) { return b ^ ((a ^ b) & -static_cast<uint64_t>(a < b)); }

template <class T>
ASC_INLINE T element(uint64_t bits) {
    return *reinterpret_cast<const T *>(&bits);
}

ASC_INLINE asc_local shifted(const asc_local &from, uint64_t bytes) {
    const uint64_t step = least(bytes, from.bytes);
    return {from.addr + static_cast<uint32_t>(bytes), from.bytes - static_cast<uint32_t>(step), from.space};
}

ASC_INLINE asc_local first_bytes(const asc_local &from, uint64_t bytes) {
    return {from.addr, static_cast<uint32_t>(least(bytes, from.bytes)), from.space};
}

namespace classes {

// The value of `x + y` until it is assigned; see operators.h. Kernels call no functions through pointers, so that the
// operation is part of the type.
enum class Operator : uint8_t { Add, Sub, Mul, Div, And, Or, LT, GT, LE, GE, EQ, NE };
template <class Result, class T, Operator operation>
struct Pending {
    asc_local a, b;
};

}  // namespace classes

using classes::Operator, classes::Pending;

}  // namespace asc

namespace AscendC {

constexpr uint32_t MAX_DIM = 8;
enum class DataFormat : uint8_t { ND, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };
struct ShapeInfo {
    uint8_t shapeDim = 0, originalShapeDim = 0;
    uint32_t shape[MAX_DIM] = {}, originalShape[MAX_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;
    constexpr ShapeInfo() = default;
    constexpr ShapeInfo(uint8_t dimensions, const uint32_t sizes[], DataFormat format = DataFormat::ND)
        : ShapeInfo(dimensions, sizes, dimensions, sizes, format) {}
    constexpr ShapeInfo(uint8_t dimensions, const uint32_t sizes[], uint8_t original_dimensions,
                        const uint32_t original[], DataFormat format)
        : shapeDim(dimensions), originalShapeDim(original_dimensions), dataFormat(format) {
        for (uint8_t i = 0; i < dimensions && i < MAX_DIM; ++i) shape[i] = sizes[i];
        for (uint8_t i = 0; i < original_dimensions && i < MAX_DIM; ++i) originalShape[i] = original[i];
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

public:
    using PrimType = T;

    // One element; reading and writing it are scalar accesses.
    class Element {
    public:
        ASC_INLINE Element(const asc_local &where, uint32_t index, At at) : where_(where), index_(index), at_(at) {}
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
        At at_;
    };

    LocalTensor() = default;
    ASC_INLINE explicit LocalTensor(const asc_local &where) : where_(where) {}
    template <class Operand, asc::Operator operation>
    LocalTensor &operator=(const asc::Pending<T, Operand, operation> &pending);
    // Static allocation: the author chooses the address. It is counted: GetLength gives the product.
    inline LocalTensor(TPosition position, uint32_t address, uint32_t elements, At at = ASC_HERE)
        : where_{address, static_cast<uint32_t>(std::is_same_v<T, int4b_t> ? elements / 2 : elements * sizeof(T)),
                 asc_space_of(static_cast<uint32_t>(position))} {
        asc_static_alloc(where_.space, where_.addr, where_.bytes, at.line);
    }

    ASC_INLINE T GetValue(uint32_t index, At at = ASC_HERE) const {
        return asc::element<T>(asc_get_local(asc::dtype<T>, where_, index, at.line));
    }
    ASC_INLINE void SetValue(uint32_t index, T value, At at = ASC_HERE) const {
        asc_set_local(asc::dtype<T>, where_, index, asc::bits(value), at.line);
    }
    ASC_INLINE Element operator()(uint32_t index, At at = ASC_HERE) const { return {where_, index, at}; }
    // May point anywhere; every use of the result is checked.
    ASC_INLINE LocalTensor operator[](uint32_t offset) const {
        return LocalTensor(asc::shifted(where_, asc::bytes_for<T>(offset)));
    }
    template <class U> ASC_INLINE LocalTensor<U> ReinterpretCast() const { return LocalTensor<U>(where_); }
    template <class U> ASC_INLINE void SetAddrWithOffset(LocalTensor<U> &from, uint32_t offset) {
        where_ = asc::shifted(from.where(), asc::bytes_for<U>(offset));
    }

    ASC_INLINE uint32_t GetSize() const { return static_cast<uint32_t>(asc::elements_in<T>(where_.bytes)); }
    ASC_INLINE void SetSize(uint32_t elements) { where_.bytes = static_cast<uint32_t>(asc::bytes_for<T>(elements)); }
    ASC_INLINE uint32_t GetLength() const { return where_.bytes; }
    ASC_INLINE void SetBufferLen(uint32_t bytes) { where_.bytes = bytes; }
    ASC_INLINE uint64_t GetPhyAddr() const { return where_.addr; }
    ASC_INLINE uint64_t GetPhyAddr(uint32_t offset) const { return where_.addr + asc::bytes_for<T>(offset); }
    ASC_INLINE int32_t GetPosition() const { return static_cast<int32_t>(position_of(where_.space)); }
    ASC_INLINE void SetUserTag(int32_t tag) { tag_ = tag; }
    ASC_INLINE int32_t GetUserTag() const { return tag_; }
    ASC_INLINE const asc_local &where() const { return where_; }

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

    asc_local where_{0, 0, ASC_UB};
    int32_t tag_ = 0;
};

template <class T>
class GlobalTensor {
    ASC_ELEMENTS("GlobalTensor", T);

public:
    using PrimType = T;

    class Element {
    public:
        ASC_INLINE Element(T *start, uint64_t index, At at) : start_(start), index_(index), at_(at) {}
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
        At at_;
    };

    GlobalTensor() = default;
    ASC_INLINE explicit GlobalTensor(T *address, uint64_t size = 0) : address_(address), size_(size) {}

    ASC_INLINE void SetGlobalBuffer(__gm__ T *address) { address_ = address; }
    ASC_INLINE void SetGlobalBuffer(__gm__ T *address, uint64_t size) {
        address_ = address;
        size_ = size;
    }
    ASC_INLINE T GetValue(uint64_t index, At at = ASC_HERE) const {
        return asc::element<T>(asc_get_global(asc::dtype<T>, at_index(index), at.line));
    }
    ASC_INLINE void SetValue(uint64_t index, T value, At at = ASC_HERE) const {
        asc_set_global(asc::dtype<T>, at_index(index), asc::bits(value), at.line);
    }
    ASC_INLINE Element operator()(uint64_t index, At at = ASC_HERE) const { return {address_, index, at}; }
    ASC_INLINE GlobalTensor operator[](uint64_t offset) const {
        return GlobalTensor(moved(offset), size_ - asc::least(offset, size_));
    }
    // Counted: GetSize gives the product.
    template <class U> inline GlobalTensor<U> ReinterpretCast() const {
        constexpr uint64_t more = sizeof(T) / sizeof(U), fewer = sizeof(U) / sizeof(T);
        if constexpr (more > 1) {
            return GlobalTensor<U>(reinterpret_cast<U *>(address_), size_ * more);
        } else if constexpr (fewer > 1) {
            return GlobalTensor<U>(reinterpret_cast<U *>(address_), size_ / fewer);
        } else {
            return GlobalTensor<U>(reinterpret_cast<U *>(address_), size_);
        }
    }
    ASC_INLINE const __gm__ T *GetPhyAddr() const { return address_; }
    ASC_INLINE __gm__ T *GetPhyAddr(uint64_t offset) const { return moved(offset); }
    ASC_INLINE uint64_t GetSize() const { return size_; }
    ASC_INLINE void SetShapeInfo(const ShapeInfo &info) { shape_ = info; }
    ASC_INLINE ShapeInfo GetShapeInfo() const { return shape_; }
    template <CacheRwMode rw = CacheRwMode::RW> ASC_INLINE void SetL2CacheHint(CacheMode mode, At at = ASC_HERE) {
        asc_cache_hint(where(), mode == CacheMode::CACHE_MODE_DISABLE, at.line);
    }
    ASC_INLINE asc_global where() const { return reinterpret_cast<asc_global>(address_); }

private:
    ASC_INLINE T *moved(uint64_t elements) const {
        return reinterpret_cast<T *>(where() + asc::bytes_for<T>(elements));
    }
    ASC_INLINE asc_global at_index(uint64_t index) const { return where() + index * sizeof(T); }

    T *address_ = nullptr;
    uint64_t size_ = 0;
    ShapeInfo shape_;
};

#undef ASC_ELEMENT_OPERATORS
#undef ASC_ELEMENT_OPERATOR

template <class T, CacheLine line = CacheLine::SINGLE_CACHE_LINE, DcciDst destination = DcciDst::CACHELINE_ALL>
ASC_INLINE void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, At at = ASC_HERE) {
    asc_cache_clean(tensor.where(), line == CacheLine::ENTIRE_DATA_CACHE, at.line);
}

}  // namespace AscendC

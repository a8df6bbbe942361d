// Element-wise instructions of the vector unit.
#pragma once
#include "walk.h"

namespace AscendC {

#define ASC_BINARY(name, op, ...)                                                                                      \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         int32_t calCount, asc::At at = ASC_HERE) {                                                    \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0,           \
                   asc_detail::count(calCount), at.line);                                                              \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         uint64_t mask, asc::Repeat repeatTimes, const BinaryRepeatParams &params,                     \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0,           \
                   asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);            \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         const uint64_t mask[], asc::Repeat repeatTimes, const BinaryRepeatParams &params,             \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0,           \
                   asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);            \
    }
ASC_BINARY(Add, ASC_ADD, int16_t, half, int32_t, float)
ASC_BINARY(Sub, ASC_SUB, int16_t, half, int32_t, float)
ASC_BINARY(Mul, ASC_MUL, int16_t, half, int32_t, float)
ASC_BINARY(Max, ASC_MAX, int16_t, half, int32_t, float)
ASC_BINARY(Min, ASC_MIN, int16_t, half, int32_t, float)
ASC_BINARY(Div, ASC_DIV, half, float)
ASC_BINARY(And, ASC_AND, int16_t, uint16_t)
ASC_BINARY(Or, ASC_OR, int16_t, uint16_t)
ASC_BINARY(AddRelu, ASC_ADDRELU, int16_t, half, float)
ASC_BINARY(SubRelu, ASC_SUBRELU, int16_t, half, float)
ASC_BINARY(FusedMulAdd, ASC_FUSEDMULADD, half, float)
ASC_BINARY(FusedMulAddRelu, ASC_FUSEDMULADDRELU, half, float)
#undef ASC_BINARY

// dst += src0 * src1; the sources may be half where dst is float.
template <class T, class U, bool isSetMask = true>
ASC_INLINE void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                          int32_t calCount, asc::At at = ASC_HERE) {
    ASC_TAKES("MulAddDst", T, half, float);
    static_assert(asc::same<T, U> || (asc::same<T, float> && asc::same<U, half>),
                  "MulAddDst takes sources of dst's type, or half for float");
    asc_vector(ASC_MULADDDST, asc::dtype<T>, asc::dtype<U>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0,
               asc_detail::count(calCount), at.line);
}
template <class T, class U, bool isSetMask = true, class Mask>
ASC_INLINE void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                          const Mask &mask, asc::Repeat repeatTimes, const BinaryRepeatParams &params,
                          asc::At at = ASC_HERE) {
    ASC_TAKES("MulAddDst", T, half, float);
    asc_vector(ASC_MULADDDST, asc::dtype<T>, asc::dtype<U>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0,
               asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);
}

#define ASC_UNARY(name, op, ...)                                                                                       \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t calCount,                       \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(), 0,             \
                   asc_detail::count(calCount), at.line);                                                              \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask, asc::Repeat repeatTimes, \
                         const UnaryRepeatParams &params, asc::At at = ASC_HERE) {                                     \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(), 0,             \
                   asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);            \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint64_t mask[],                  \
                         asc::Repeat repeatTimes, const UnaryRepeatParams &params, asc::At at = ASC_HERE) {            \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(), 0,             \
                   asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);            \
    }
ASC_UNARY(Exp, ASC_EXP, half, float)
ASC_UNARY(Ln, ASC_LN, half, float)
ASC_UNARY(Abs, ASC_ABS, half, float)
ASC_UNARY(Sqrt, ASC_SQRT, half, float)
ASC_UNARY(Rsqrt, ASC_RSQRT, half, float)
ASC_UNARY(Reciprocal, ASC_RECIPROCAL, half, float)
ASC_UNARY(Relu, ASC_RELU, half, float, int32_t)
ASC_UNARY(Not, ASC_NOT, int16_t, uint16_t)
#undef ASC_UNARY

// The scalar must have exactly the tensor's type: a literal of another type is not deduced, as on the device.
#define ASC_WITH_SCALAR(name, op, ...)                                                                                 \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, int32_t calCount,      \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(),                \
                   asc_bits(scalar), asc_detail::count(calCount), at.line);                                            \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, uint64_t mask,         \
                         asc::Repeat repeatTimes, const UnaryRepeatParams &params, asc::At at = ASC_HERE) {            \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(),                \
                   asc_bits(scalar), asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)),    \
                   at.line);                                                                                           \
    }                                                                                                                  \
    template <class T, bool isSetMask = true>                                                                          \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, const uint64_t mask[], \
                         asc::Repeat repeatTimes, const UnaryRepeatParams &params, asc::At at = ASC_HERE) {            \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_vector(op, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(),                \
                   asc_bits(scalar), asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)),    \
                   at.line);                                                                                           \
    }
ASC_WITH_SCALAR(Adds, ASC_ADDS, int16_t, half, int32_t, float)
ASC_WITH_SCALAR(Muls, ASC_MULS, int16_t, half, int32_t, float)
ASC_WITH_SCALAR(Maxs, ASC_MAXS, int16_t, half, int32_t, float)
ASC_WITH_SCALAR(Mins, ASC_MINS, int16_t, half, int32_t, float)
ASC_WITH_SCALAR(LeakyRelu, ASC_LEAKYRELU, half, float)
ASC_WITH_SCALAR(ShiftLeft, ASC_SHIFTLEFT, int16_t, uint16_t, int32_t, uint32_t)
ASC_WITH_SCALAR(ShiftRight, ASC_SHIFTRIGHT, int16_t, uint16_t, int32_t, uint32_t)
#undef ASC_WITH_SCALAR

// dst += src * scalar; the source may be half where dst is float.
template <class T, class U, bool isSetMask = true>
ASC_INLINE void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar, int32_t calCount,
                     asc::At at = ASC_HERE) {
    static_assert(asc::one_of<U, half, float> && (asc::same<T, U> || asc::same<T, float>),
                  "Axpy takes half and half, float and float, or float and half");
    asc_vector(ASC_AXPY, asc::dtype<T>, asc::dtype<U>, dst.asc_where(), src.asc_where(), src.asc_where(),
               asc_bits(scalar), asc_detail::count(calCount), at.line);
}
template <class T, class U, bool isSetMask = true, class Mask>
ASC_INLINE void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar, const Mask &mask,
                     asc::Repeat repeatTimes, const UnaryRepeatParams &params, asc::At at = ASC_HERE) {
    static_assert(asc::one_of<U, half, float> && (asc::same<T, U> || asc::same<T, float>),
                  "Axpy takes half and half, float and float, or float and half");
    asc_vector(ASC_AXPY, asc::dtype<T>, asc::dtype<U>, dst.asc_where(), src.asc_where(), src.asc_where(),
               asc_bits(scalar), asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)),
               at.line);
}

template <class T, bool isSetMask = true>
ASC_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalar, int32_t calCount, asc::At at = ASC_HERE) {
    ASC_TAKES("Duplicate", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_vector(ASC_DUPLICATE, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), dst.asc_where(), dst.asc_where(),
               asc_bits(scalar), asc_detail::count(calCount), at.line);
}
template <class T, bool isSetMask = true>
ASC_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalar, uint64_t mask, asc::Repeat repeatTimes,
                          uint16_t dstBlockStride, uint8_t dstRepeatStride, asc::At at = ASC_HERE) {
    ASC_TAKES("Duplicate", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_vector(ASC_DUPLICATE, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), dst.asc_where(), dst.asc_where(),
               asc_bits(scalar),
               asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(dstBlockStride, dstRepeatStride)),
               at.line);
}
template <class T, bool isSetMask = true>
ASC_INLINE void Duplicate(const LocalTensor<T> &dst, const T &scalar, const uint64_t mask[], asc::Repeat repeatTimes,
                          uint16_t dstBlockStride, uint8_t dstRepeatStride, asc::At at = ASC_HERE) {
    ASC_TAKES("Duplicate", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_vector(ASC_DUPLICATE, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), dst.asc_where(), dst.asc_where(),
               asc_bits(scalar),
               asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(dstBlockStride, dstRepeatStride)),
               at.line);
}

// Copies UB to UB through the vector unit.
template <class T, bool isSetMask = true, class Mask>
ASC_INLINE void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask, asc::Repeat repeatTimes,
                     const CopyRepeatParams &params, asc::At at = ASC_HERE) {
    ASC_TAKES("Copy", T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float);
    asc_vector(ASC_COPY, asc::dtype<T>, asc::dtype<T>, dst.asc_where(), src.asc_where(), src.asc_where(), 0,
               asc_detail::masked<isSetMask>(
                   mask, repeatTimes,
                   asc_detail::strides(params.dstStride, params.dstRepeatSize, params.srcStride, params.srcRepeatSize)),
               at.line);
}

}  // namespace AscendC

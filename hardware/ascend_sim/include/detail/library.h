// High-level vector functions: several instructions each, with a temporary buffer.
#pragma once
#include "walk.h"

namespace AscendC {

namespace asc_detail {
ASC_INLINE asc_local left_over() { return asc_unallocated(ASC_UB); }
constexpr asc_local nothing{0, 0, ASC_UB};
constexpr uint32_t REUSES_SOURCE = 1, SECOND_IS_SCALAR = 2, FIRST_IS_SCALAR = 4;

template <class T>
ASC_INLINE void library(uint32_t op, const LocalTensor<T> &dst, const LocalTensor<T> &src, const asc_local &tmp,
                        uint32_t flags, uint32_t count, asc::At at, uint64_t scalar = 0) {
    asc_library(op, asc::dtype<T>, dst.asc_where(), src.asc_where(), nothing, tmp, scalar, flags, count, at.line);
}
}  // namespace asc_detail

// Op(dst, src, tmp, count), Op(dst, src, tmp), Op(dst, src, count), Op(dst, src).
#define ASC_LIBRARY(name, op, ...)                                                                                     \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                         \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t calCount, asc::At at = ASC_HERE) {      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_detail::library(op, dst, src, sharedTmpBuffer.asc_where(), isReuseSource, calCount, at);                   \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                         \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, asc::At at = ASC_HERE) {                         \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_detail::library(op, dst, src, sharedTmpBuffer.asc_where(), isReuseSource, src.GetSize(), at);              \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t calCount,                      \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_detail::library(op, dst, src, asc_detail::left_over(), isReuseSource, calCount, at);                       \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, asc::At at = ASC_HERE) {                \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_detail::library(op, dst, src, asc_detail::left_over(), isReuseSource, src.GetSize(), at);                  \
    }
ASC_LIBRARY(Tanh, ASC_TANH, half, float)
ASC_LIBRARY(Sigmoid, ASC_SIGMOID, half, float)
ASC_LIBRARY(Erf, ASC_ERF, half, float)
ASC_LIBRARY(Erfc, ASC_ERFC, half, float)
ASC_LIBRARY(Sin, ASC_SIN, half, float)
ASC_LIBRARY(Cos, ASC_COS, half, float)
ASC_LIBRARY(Tan, ASC_TAN, half, float)
ASC_LIBRARY(Asin, ASC_ASIN, half, float)
ASC_LIBRARY(Acos, ASC_ACOS, half, float)
ASC_LIBRARY(Atan, ASC_ATAN, half, float)
ASC_LIBRARY(Sinh, ASC_SINH, half, float)
ASC_LIBRARY(Cosh, ASC_COSH, half, float)
ASC_LIBRARY(Asinh, ASC_ASINH, half, float)
ASC_LIBRARY(Acosh, ASC_ACOSH, half, float)
ASC_LIBRARY(Atanh, ASC_ATANH, half, float)
ASC_LIBRARY(Floor, ASC_FLOOR, half, float)
ASC_LIBRARY(Ceil, ASC_CEIL, half, float)
ASC_LIBRARY(Round, ASC_ROUND, half, float)
ASC_LIBRARY(Trunc, ASC_TRUNC, half, float)
ASC_LIBRARY(Frac, ASC_FRAC, half, float)
ASC_LIBRARY(Sign, ASC_SIGN, half, float)
ASC_LIBRARY(Lgamma, ASC_LGAMMA, half, float)
ASC_LIBRARY(Digamma, ASC_DIGAMMA, half, float)
ASC_LIBRARY(Log, ASC_LOG, half, float)
ASC_LIBRARY(Log2, ASC_LOG2, half, float)
ASC_LIBRARY(Log10, ASC_LOG10, half, float)
#undef ASC_LIBRARY

// Exp with more terms than the instruction.
template <class T, uint8_t taylorExpandLevel, bool isReuseSource = false>
ASC_INLINE void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                    uint32_t calCount, asc::At at = ASC_HERE) {
    ASC_TAKES("Exp", T, half, float);
    asc_detail::library(ASC_EXPHIGH, dst, src, sharedTmpBuffer.asc_where(), isReuseSource, calCount, at);
}

// Activations: the count comes before their own parameters.
#define ASC_ACTIVATION(name, op)                                                                                       \
    template <class T, bool highPrecision = false, bool highPerformance = false>                                       \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                         \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t dataSize, asc::At at = ASC_HERE) {      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::library(op, dst, src, sharedTmpBuffer.asc_where(), 0, dataSize, at);                               \
    }                                                                                                                  \
    template <class T, bool highPrecision = false, bool highPerformance = false>                                       \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t dataSize,                      \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::library(op, dst, src, asc_detail::left_over(), 0, dataSize, at);                                   \
    }
ASC_ACTIVATION(Gelu, ASC_GELU)
ASC_ACTIVATION(FasterGelu, ASC_FASTERGELU)
ASC_ACTIVATION(FasterGeluV2, ASC_FASTERGELUV2)
#undef ASC_ACTIVATION

template <class T, bool isReuseSource = false>
ASC_INLINE void Silu(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t dataSize, asc::At at = ASC_HERE) {
    ASC_TAKES("Silu", T, half, float);
    asc_detail::library(ASC_SILU, dst, src, asc_detail::left_over(), isReuseSource, dataSize, at);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void Swish(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t dataSize, const T scalarValue,
                      asc::At at = ASC_HERE) {
    ASC_TAKES("Swish", T, half, float);
    asc_detail::library(ASC_SWISH, dst, src, asc_detail::left_over(), isReuseSource, dataSize, at,
                        asc_bits(scalarValue));
}

// ClampMax(dst, src[, tmp], limit, count).
#define ASC_CLAMP(name, op)                                                                                            \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                         \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, const T scalar, uint32_t calCount,               \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::library(op, dst, src, sharedTmpBuffer.asc_where(), isReuseSource, calCount, at, asc_bits(scalar)); \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar, uint32_t calCount,      \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_TAKES(#name, T, half, float);                                                                              \
        asc_detail::library(op, dst, src, asc_detail::left_over(), isReuseSource, calCount, at, asc_bits(scalar));     \
    }
ASC_CLAMP(ClampMax, ASC_CLAMPMAX)
ASC_CLAMP(ClampMin, ASC_CLAMPMIN)
#undef ASC_CLAMP

// Two operands: Op(dst, src0, src1[, tmp][, count]).
#define ASC_LIBRARY2(name, op, ...)                                                                                    \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t calCount, asc::At at = ASC_HERE) {      \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_library(op, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(),                            \
                    sharedTmpBuffer.asc_where(), 0, isReuseSource, calCount, at.line);                                 \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         const LocalTensor<uint8_t> &sharedTmpBuffer, asc::At at = ASC_HERE) {                         \
        AscendC::name<T, isReuseSource>(dst, src0, src1, sharedTmpBuffer, src0.GetSize(), at);                         \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         uint32_t calCount, asc::At at = ASC_HERE) {                                                   \
        ASC_TAKES(#name, T, __VA_ARGS__);                                                                              \
        asc_library(op, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), asc_detail::left_over(),   \
                    0, isReuseSource, calCount, at.line);                                                              \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,            \
                         asc::At at = ASC_HERE) {                                                                      \
        AscendC::name<T, isReuseSource>(dst, src0, src1, src0.GetSize(), at);                                          \
    }
ASC_LIBRARY2(Power, ASC_POWER, half, float, int32_t)
ASC_LIBRARY2(Fmod, ASC_FMOD, half, float)
ASC_LIBRARY2(Xor, ASC_XOR, int16_t, uint16_t)
ASC_LIBRARY2(GeGLU, ASC_GEGLU, half, float)
ASC_LIBRARY2(ReGlu, ASC_REGLU, half, float)
#undef ASC_LIBRARY2

// One of Power's operands may be a scalar.
#define ASC_POWER_SCALAR(first_type, second_type, src0_, src1_, scalar_, flag)                                         \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void Power(const LocalTensor<T> &dst, first_type, second_type,                                          \
                          const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t calCount, asc::At at = ASC_HERE) {     \
        ASC_TAKES("Power", T, half, float, int32_t);                                                                   \
        asc_library(ASC_POWER, asc::dtype<T>, dst.asc_where(), src0_, src1_, sharedTmpBuffer.asc_where(),              \
                    asc_bits(scalar_), isReuseSource | asc_detail::flag, calCount, at.line);                           \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void Power(const LocalTensor<T> &dst, first_type, second_type, uint32_t calCount,                       \
                          asc::At at = ASC_HERE) {                                                                     \
        ASC_TAKES("Power", T, half, float, int32_t);                                                                   \
        asc_library(ASC_POWER, asc::dtype<T>, dst.asc_where(), src0_, src1_, asc_detail::left_over(),                  \
                    asc_bits(scalar_), isReuseSource | asc_detail::flag, calCount, at.line);                           \
    }                                                                                                                  \
    template <class T, bool isReuseSource = false>                                                                     \
    ASC_INLINE void Power(const LocalTensor<T> &dst, first_type, second_type, asc::At at = ASC_HERE) {                 \
        ASC_TAKES("Power", T, half, float, int32_t);                                                                   \
        asc_library(ASC_POWER, asc::dtype<T>, dst.asc_where(), src0_, src1_, asc_detail::left_over(),                  \
                    asc_bits(scalar_), isReuseSource | asc_detail::flag, dst.GetSize(), at.line);                      \
    }
ASC_POWER_SCALAR(const LocalTensor<T> &src0, const T &exponent, src0.asc_where(), asc_detail::nothing, exponent,
                 SECOND_IS_SCALAR)
ASC_POWER_SCALAR(const T &base, const LocalTensor<T> &src1, asc_detail::nothing, src1.asc_where(), base,
                 FIRST_IS_SCALAR)
#undef ASC_POWER_SCALAR

template <class T, bool isReuseSource = false>
ASC_INLINE void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                       const float &scalarValue, asc::At at = ASC_HERE) {
    ASC_TAKES("SwiGLU", T, half, float);
    asc_library(ASC_SWIGLU, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), asc_detail::left_over(),
                asc_bits(scalarValue), isReuseSource, src0.GetSize(), at.line);
}
template <class T, bool isReuseSource = false>
ASC_INLINE void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                       const float &scalarValue, uint32_t calCount, asc::At at = ASC_HERE) {
    ASC_TAKES("SwiGLU", T, half, float);
    asc_library(ASC_SWIGLU, asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), asc_detail::left_over(),
                asc_bits(scalarValue), isReuseSource, calCount, at.line);
}

}  // namespace AscendC

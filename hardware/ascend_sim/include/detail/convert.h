// Conversion, comparison and selection.
#pragma once
#include "walk.h"

namespace AscendC {

namespace asc_detail {
template <class D, class S> constexpr bool castable = false;
#define ASC_CAST(S, D) template <> inline constexpr bool castable<D, S> = true;
// clang-format off
ASC_CAST(half, float) ASC_CAST(bfloat16_t, float) ASC_CAST(int16_t, float) ASC_CAST(int8_t, half) ASC_CAST(uint8_t, half)
ASC_CAST(float, half) ASC_CAST(float, bfloat16_t) ASC_CAST(float, int32_t) ASC_CAST(float, int16_t) ASC_CAST(float, int64_t)
ASC_CAST(float, float) ASC_CAST(half, int32_t) ASC_CAST(half, int16_t) ASC_CAST(bfloat16_t, int32_t) ASC_CAST(int64_t, float)
ASC_CAST(half, int8_t) ASC_CAST(half, uint8_t) ASC_CAST(int16_t, half) ASC_CAST(int32_t, float) ASC_CAST(int32_t, int16_t)
ASC_CAST(int32_t, int64_t) ASC_CAST(int64_t, int32_t) ASC_CAST(int32_t, half) ASC_CAST(int4b_t, half) ASC_CAST(half, int4b_t)
// clang-format on
#undef ASC_CAST
}  // namespace asc_detail

#define ASC_CASTABLE                                                                                                   \
    static_assert(asc_detail::castable<D, S>, "Cast has no such pair of types on Atlas A2; go through float or half")

template <class D, class S>
ASC_INLINE void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, const RoundMode &round, uint32_t calCount,
                     asc::At at = ASC_HERE) {
    ASC_CASTABLE;
    asc_cast(asc::dtype<D>, asc::dtype<S>, dst.asc_where(), src.asc_where(), static_cast<uint32_t>(round),
             asc_detail::count(calCount), at.line);
}
template <class D, class S, bool isSetMask = true>
ASC_INLINE void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, const RoundMode &round, uint64_t mask,
                     asc::Repeat repeatTimes, const UnaryRepeatParams &params, asc::At at = ASC_HERE) {
    ASC_CASTABLE;
    asc_cast(asc::dtype<D>, asc::dtype<S>, dst.asc_where(), src.asc_where(), static_cast<uint32_t>(round),
             asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);
}
template <class D, class S, bool isSetMask = true>
ASC_INLINE void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, const RoundMode &round,
                     const uint64_t mask[], asc::Repeat repeatTimes, const UnaryRepeatParams &params,
                     asc::At at = ASC_HERE) {
    ASC_CASTABLE;
    asc_cast(asc::dtype<D>, asc::dtype<S>, dst.asc_where(), src.asc_where(), static_cast<uint32_t>(round),
             asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);
}
#undef ASC_CASTABLE

// One scalar, on the scalar unit.
template <class S, class D, RoundMode round> ASC_UNCOUNTED inline D ScalarCast(S value) {
    static_assert(asc::same<S, float> && asc::one_of<D, half, int32_t>, "ScalarCast takes float to half or int32_t");
    const float number = value;
    if constexpr (asc::same<D, half>) {
        half result;
        result.value = asc::half_from(number);
        return result;
    }
    const int32_t down = static_cast<int32_t>(number) - (number < static_cast<float>(static_cast<int32_t>(number)));
    const float rest = number - static_cast<float>(down);
    switch (round) {
        case RoundMode::CAST_FLOOR: return static_cast<D>(down);
        case RoundMode::CAST_CEIL: return static_cast<D>(down + (rest > 0));
        case RoundMode::CAST_ROUND: return static_cast<D>(number < 0 ? down + (rest > 0.5f) : down + (rest >= 0.5f));
        case RoundMode::CAST_RINT: return static_cast<D>(down + (rest > 0.5f || (rest == 0.5f && (down & 1))));
        default: return static_cast<D>(number);
    }
}

// The result holds one bit for each element, the first in the lowest bit of the first byte, in a tensor of any type.
#define ASC_COMPARABLE(name, T) ASC_TAKES(name, T, half, float, int32_t)

template <class T, class U>
ASC_INLINE void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
                        uint32_t calCount, asc::At at = ASC_HERE) {
    ASC_COMPARABLE("Compare", T);
    asc_compare(static_cast<uint32_t>(mode), asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0, 0,
                asc_detail::count(calCount), at.line);
}
template <class T, class U, bool isSetMask = true, class Mask>
ASC_INLINE void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE mode,
                        const Mask &mask, asc::Repeat repeatTimes, const BinaryRepeatParams &params,
                        asc::At at = ASC_HERE) {
    ASC_COMPARABLE("Compare", T);
    asc_compare(static_cast<uint32_t>(mode), asc::dtype<T>, dst.asc_where(), src0.asc_where(), src1.asc_where(), 0, 0,
                asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);
}

#define ASC_COMPARE_SCALAR(name)                                                                                       \
    template <class T, class U>                                                                                        \
    ASC_INLINE void name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE mode,      \
                         uint32_t calCount, asc::At at = ASC_HERE) {                                                   \
        ASC_COMPARABLE(#name, T);                                                                                      \
        asc_compare(static_cast<uint32_t>(mode), asc::dtype<T>, dst.asc_where(), src0.asc_where(), src0.asc_where(),   \
                    asc_bits(src1Scalar), 1, asc_detail::count(calCount), at.line);                                    \
    }                                                                                                                  \
    template <class T, class U, bool isSetMask = true, class Mask>                                                     \
    ASC_INLINE void name(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE mode,      \
                         const Mask &mask, asc::Repeat repeatTimes, const UnaryRepeatParams &params,                   \
                         asc::At at = ASC_HERE) {                                                                      \
        ASC_COMPARABLE(#name, T);                                                                                      \
        asc_compare(static_cast<uint32_t>(mode), asc::dtype<T>, dst.asc_where(), src0.asc_where(), src0.asc_where(),   \
                    asc_bits(src1Scalar), 1,                                                                           \
                    asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);           \
    }
ASC_COMPARE_SCALAR(CompareScalar)
ASC_COMPARE_SCALAR(Compares)
#undef ASC_COMPARE_SCALAR
#undef ASC_COMPARABLE

// A set bit selects src0.
#define ASC_SELECTABLE(T, U)                                                                                           \
    ASC_TAKES("Select", T, half, float);                                                                               \
    static_assert(asc::one_of<U, bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t>,                                 \
                  "Select takes its mask as bits: uint8_t, uint16_t, uint32_t or uint64_t")

template <class T, class U>
ASC_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
                       const LocalTensor<T> &src1, SELMODE selMode, uint32_t calCount, asc::At at = ASC_HERE) {
    ASC_SELECTABLE(T, U);
    asc_select(static_cast<uint32_t>(selMode), asc::dtype<T>, dst.asc_where(), selMask.asc_where(), src0.asc_where(),
               src1.asc_where(), 0, asc_detail::count(calCount), at.line);
}
template <class T, class U>
ASC_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1,
                       SELMODE selMode, uint32_t calCount, asc::At at = ASC_HERE) {
    ASC_SELECTABLE(T, U);
    asc_select(static_cast<uint32_t>(selMode), asc::dtype<T>, dst.asc_where(), selMask.asc_where(), src0.asc_where(),
               src0.asc_where(), asc_bits(src1), asc_detail::count(calCount), at.line);
}
template <class T, class U, bool isSetMask = true, class Mask>
ASC_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
                       const LocalTensor<T> &src1, SELMODE selMode, const Mask &mask, asc::Repeat repeatTimes,
                       const BinaryRepeatParams &params, asc::At at = ASC_HERE) {
    ASC_SELECTABLE(T, U);
    asc_select(static_cast<uint32_t>(selMode), asc::dtype<T>, dst.asc_where(), selMask.asc_where(), src0.asc_where(),
               src1.asc_where(), 0, asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)),
               at.line);
}
template <class T, class U, bool isSetMask = true, class Mask>
ASC_INLINE void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1,
                       SELMODE selMode, const Mask &mask, asc::Repeat repeatTimes, const BinaryRepeatParams &params,
                       asc::At at = ASC_HERE) {
    ASC_SELECTABLE(T, U);
    asc_select(static_cast<uint32_t>(selMode), asc::dtype<T>, dst.asc_where(), selMask.asc_where(), src0.asc_where(),
               src0.asc_where(), asc_bits(src1),
               asc_detail::masked<isSetMask>(mask, repeatTimes, asc_detail::strides(params)), at.line);
}
#undef ASC_SELECTABLE

}  // namespace AscendC

// Operators between tensors: `z = x + y` works on all of z. They have no access to the line of the call.
#pragma once
#include "convert.h"
#include "vector.h"

namespace AscendC {

#define ASC_OPERATOR(symbol, name)                                                                                     \
    template <class T> ASC_INLINE asc::Pending<T> operator symbol(const LocalTensor<T> &a, const LocalTensor<T> &b) {  \
        return {a.where(), b.where(), [](const asc_local &to, const asc_local &x, const asc_local &y) ASC_UNCOUNTED {  \
                    const LocalTensor<T> dst(to);                                                                      \
                    name(dst, LocalTensor<T>(x), LocalTensor<T>(y), static_cast<int32_t>(dst.GetSize()), At{0});       \
                }};                                                                                                    \
    }
ASC_OPERATOR(+, Add)
ASC_OPERATOR(-, Sub)
ASC_OPERATOR(*, Mul)
ASC_OPERATOR(/, Div)
ASC_OPERATOR(&, And)
ASC_OPERATOR(|, Or)
#undef ASC_OPERATOR

#define ASC_OPERATOR(symbol, mode)                                                                                     \
    template <class T> ASC_INLINE asc::Pending<uint8_t> operator symbol(const LocalTensor<T> &a,                       \
                                                                        const LocalTensor<T> &b) {                     \
        return {a.where(), b.where(), [](const asc_local &to, const asc_local &x, const asc_local &y) ASC_UNCOUNTED {  \
                    const LocalTensor<uint8_t> dst(to);                                                                \
                    Compare(dst, LocalTensor<T>(x), LocalTensor<T>(y), CMPMODE::mode, LocalTensor<T>(x).GetSize(),     \
                            At{0});                                                                                    \
                }};                                                                                                    \
    }
ASC_OPERATOR(<, LT)
ASC_OPERATOR(>, GT)
ASC_OPERATOR(<=, LE)
ASC_OPERATOR(>=, GE)
ASC_OPERATOR(==, EQ)
ASC_OPERATOR(!=, NE)
#undef ASC_OPERATOR

}  // namespace AscendC

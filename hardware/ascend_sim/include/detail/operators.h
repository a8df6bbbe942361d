// Operators between tensors: `z = x + y` works on all of z. They have no access to the line of the call.
#pragma once
#include "convert.h"
#include "vector.h"

namespace AscendC {

#define ASC_OPERATOR(symbol, result, name)                                                                             \
    template <class T> ASC_INLINE asc::Pending<result, T, asc::Operator::name> operator symbol(                        \
        const LocalTensor<T> &a, const LocalTensor<T> &b) {                                                            \
        return {a.asc_where(), b.asc_where()};                                                                         \
    }
ASC_OPERATOR(+, T, Add)
ASC_OPERATOR(-, T, Sub)
ASC_OPERATOR(*, T, Mul)
ASC_OPERATOR(/, T, Div)
ASC_OPERATOR(&, T, And)
ASC_OPERATOR(|, T, Or)
ASC_OPERATOR(<, uint8_t, LT)
ASC_OPERATOR(>, uint8_t, GT)
ASC_OPERATOR(<=, uint8_t, LE)
ASC_OPERATOR(>=, uint8_t, GE)
ASC_OPERATOR(==, uint8_t, EQ)
ASC_OPERATOR(!=, uint8_t, NE)
#undef ASC_OPERATOR

template <class T>
template <class Operand, asc::Operator operation>
ASC_INLINE LocalTensor<T> &LocalTensor<T>::operator=(const asc::Pending<T, Operand, operation> &pending) {
    const LocalTensor<Operand> a(pending.a), b(pending.b);
    [[maybe_unused]] const auto count = static_cast<int32_t>(GetSize());
#define ASC_COMPUTE(name)                                                                                              \
    if constexpr (operation == asc::Operator::name) AscendC::name(*this, a, b, count, asc::At{0});
#define ASC_COMPARE(name)                                                                                              \
    if constexpr (operation == asc::Operator::name)                                                                    \
        AscendC::Compare(*this, a, b, CMPMODE::name, a.GetSize(), asc::At{0});
    ASC_COMPUTE(Add)
    ASC_COMPUTE(Sub)
    ASC_COMPUTE(Mul)
    ASC_COMPUTE(Div)
    ASC_COMPUTE(And)
    ASC_COMPUTE(Or)
    ASC_COMPARE(LT)
    ASC_COMPARE(GT)
    ASC_COMPARE(LE)
    ASC_COMPARE(GE)
    ASC_COMPARE(EQ)
    ASC_COMPARE(NE)
#undef ASC_COMPUTE
#undef ASC_COMPARE
    return *this;
}

}  // namespace AscendC

#include "numerics.h"

#include <algorithm>
#include <type_traits>

#include "dtype.h"
#include "elementary.h"

namespace sim {

namespace {

// ---- operations on one element -------------------------------------------------------------------------------------

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Integer arithmetic wraps around.
template <class T>
T add(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
    else return a + b;
}
template <class T>
T subtract(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
    else return a - b;
}
template <class T>
T multiply(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return a * b;
}
// If either operand is not-a-number, so is the result.
template <class T>
T larger(T a, T b) {
    return a > b || a != a ? a : b;
}
template <class T>
T smaller(T a, T b) {
    return a < b || a != a ? a : b;
}
template <class T>
T relu(T a) {
    return a < 0 ? T(0) : a;
}

// f(old destination, a, b, scalar). Few operations use the old destination.
struct Fresh { static constexpr bool reads_dst = false; };
struct Update { static constexpr bool reads_dst = true; };
struct Add : Fresh {
    template <class T> static T f(T, T a, T b, T) { return add(a, b); }
};
struct Sub : Fresh {
    template <class T> static T f(T, T a, T b, T) { return subtract(a, b); }
};
struct Mul : Fresh {
    template <class T> static T f(T, T a, T b, T) { return multiply(a, b); }
};
struct Div : Fresh {
    template <class T> static T f(T, T a, T b, T) { return a / b; }
};
struct Max : Fresh {
    template <class T> static T f(T, T a, T b, T) { return larger(a, b); }
};
struct Min : Fresh {
    template <class T> static T f(T, T a, T b, T) { return smaller(a, b); }
};
struct And : Fresh {
    template <class T> static T f(T, T a, T b, T) { return static_cast<T>(a & b); }
};
struct Or : Fresh {
    template <class T> static T f(T, T a, T b, T) { return static_cast<T>(a | b); }
};
struct AddRelu : Fresh {
    template <class T> static T f(T, T a, T b, T) { return relu(add(a, b)); }
};
struct SubRelu : Fresh {
    template <class T> static T f(T, T a, T b, T) { return relu(subtract(a, b)); }
};
struct MulAddDst : Update {
    template <class T> static T f(T d, T a, T b, T) { return a * b + d; }
};
struct FusedMulAdd : Update {
    template <class T> static T f(T d, T a, T b, T) { return a * d + b; }
};
struct FusedMulAddRelu : Update {
    template <class T> static T f(T d, T a, T b, T) { return relu(a * d + b); }
};
struct Exp : Fresh {
    template <class T> static T f(T, T a, T, T) { return static_cast<T>(elementary::exp(a)); }
};
struct Ln : Fresh {
    template <class T> static T f(T, T a, T, T) { return static_cast<T>(elementary::log(a)); }
};
struct Abs : Fresh {
    template <class T> static T f(T, T a, T, T) { return static_cast<T>(elementary::absolute(a)); }
};
struct Sqrt : Fresh {
    template <class T>
    static T f(T, T a, T, T) {
        return static_cast<T>(__builtin_sqrt(static_cast<double>(a)));
    }
};
struct Rsqrt : Fresh {
    template <class T>
    static T f(T, T a, T, T) {
        return static_cast<T>(1 / __builtin_sqrt(static_cast<double>(a)));
    }
};
struct Reciprocal : Fresh {
    template <class T> static T f(T, T a, T, T) { return T(1) / a; }
};
// The device looks reciprocals of float up in a table: 8 significant bits, rounded to nearest. Div and Sqrt are exact.
template <class Exact>
struct Tabled : Fresh {
    static constexpr uint32_t dropped = 16;
    template <class T>
    static T f(T d, T a, T b, T s) {
        const T value = Exact::f(d, a, b, s);
        const uint32_t bits = bits_of(value);
        if ((bits & 0x7f800000u) == 0x7f800000u) return value;  // infinite or not a number
        return float_of((bits + (1u << (dropped - 1))) & ~((1u << dropped) - 1));
    }
};
struct Relu : Fresh {
    template <class T> static T f(T, T a, T, T) { return relu(a); }
};
struct Not : Fresh {
    template <class T> static T f(T, T a, T, T) { return static_cast<T>(~a); }
};
struct Copy : Fresh {
    template <class T> static T f(T, T a, T, T) { return a; }
};
struct Adds : Fresh {
    template <class T> static T f(T, T a, T, T s) { return add(a, s); }
};
struct Muls : Fresh {
    template <class T> static T f(T, T a, T, T s) { return multiply(a, s); }
};
struct Maxs : Fresh {
    template <class T> static T f(T, T a, T, T s) { return larger(a, s); }
};
struct Mins : Fresh {
    template <class T> static T f(T, T a, T, T s) { return smaller(a, s); }
};
struct LeakyRelu : Fresh {
    template <class T> static T f(T, T a, T, T s) { return a >= 0 ? a : a * s; }
};
struct Axpy : Update {
    template <class T> static T f(T d, T a, T, T s) { return a * s + d; }
};
struct Duplicate : Fresh {
    template <class T> static T f(T, T, T, T s) { return s; }
};

template <class T>
T shift_left(T a, uint64_t by) {
    return by >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<Unsigned<T>>(a) << by);
}
template <class T>
T shift_right(T a, uint64_t by) {
    const uint64_t most = sizeof(T) * 8 - 1;
    if (by > most) return a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> by);
}
struct ShiftLeft : Fresh {
    template <class T>
    static T f(T, T a, T, T s) {
        return shift_left(a, static_cast<Unsigned<T>>(s));
    }
};
struct ShiftRight : Fresh {
    template <class T>
    static T f(T, T a, T, T s) {
        return shift_right(a, static_cast<Unsigned<T>>(s));
    }
};

// ---- operations on a row -------------------------------------------------------------------------------------------

struct Half {};  // a row of half, computed as float

template <class T>
T narrow(T value) {
    if constexpr (std::is_same_v<T, float>) return canonical(value);
    else return value;
}

template <class T>
T scalar_as(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class Op, class T>
struct Over {
    static void run(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t scalar, size_t n) {
        Row<T> *d = reinterpret_cast<Row<T> *>(dst);
        const Row<T> *x = reinterpret_cast<const Row<T> *>(a ? a : dst),
                     *y = reinterpret_cast<const Row<T> *>(b ? b : dst);
        const T s = scalar_as<T>(scalar);
        for (size_t i = 0; i < n; ++i) d[i] = narrow<T>(Op::template f<T>(d[i], x[i], y[i], s));
    }
};

template <class Op>
struct Over<Op, Half> {
    static void widen(float *to, const uint8_t *from, size_t at, size_t m) {
        if (from) floats_from_halves(to, reinterpret_cast<const Row<uint16_t> *>(from) + at, m);
    }

    static void run(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t scalar, size_t n) {
        Row<uint16_t> *d = reinterpret_cast<Row<uint16_t> *>(dst);
        const float s = float_from_half(static_cast<uint16_t>(scalar));
        float old[half_chunk] = {}, left[half_chunk] = {}, right[half_chunk] = {};
        for (size_t at = 0; at < n; at += half_chunk) {
            const size_t m = std::min(half_chunk, n - at);
            widen(old, Op::reads_dst ? dst : nullptr, at, m);
            widen(left, a, at, m);
            widen(right, b, at, m);
            for (size_t i = 0; i < m; ++i) old[i] = Op::template f<float>(old[i], left[i], right[i], s);
            halves_from_floats(d + at, old, m);
        }
    }
};

// Axpy with a float destination and a half source.
void axpy_mixed(uint8_t *dst, const uint8_t *a, const uint8_t *, uint64_t scalar, size_t n) {
    Row<float> *d = reinterpret_cast<Row<float> *>(dst);
    const Row<uint16_t> *x = reinterpret_cast<const Row<uint16_t> *>(a);
    const float s = float_from_half(static_cast<uint16_t>(scalar));
    for (size_t i = 0; i < n; ++i) d[i] = canonical(float_from_half(x[i]) * s + d[i]);
}

// MulAddDst with a float destination and half sources.
void mul_add_mixed(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t, size_t n) {
    Row<float> *d = reinterpret_cast<Row<float> *>(dst);
    const Row<uint16_t> *x = reinterpret_cast<const Row<uint16_t> *>(a),
                        *y = reinterpret_cast<const Row<uint16_t> *>(b);
    for (size_t i = 0; i < n; ++i) d[i] = canonical(float_from_half(x[i]) * float_from_half(y[i]) + d[i]);
}

template <class Op>
Kernel for_floats(uint32_t dtype) {
    switch (dtype) {
        case ASC_F32: return Over<Op, float>::run;
        case ASC_F16: return Over<Op, Half>::run;
        default: return nullptr;
    }
}

template <class Op>
Kernel for_numbers(uint32_t dtype) {
    switch (dtype) {
        case ASC_I16: return Over<Op, int16_t>::run;
        case ASC_I32: return Over<Op, int32_t>::run;
        default: return for_floats<Op>(dtype);
    }
}

template <class Op>
Kernel for_words(uint32_t dtype) {
    switch (dtype) {
        case ASC_I16: return Over<Op, int16_t>::run;
        case ASC_U16: return Over<Op, uint16_t>::run;
        case ASC_I32: return Over<Op, int32_t>::run;
        case ASC_U32: return Over<Op, uint32_t>::run;
        default: return nullptr;
    }
}

// Copies bits regardless of their type.
template <class Op>
Kernel for_bits(uint32_t dtype) {
    switch (bytes_of_dtype(dtype)) {
        case 2: return Over<Op, uint16_t>::run;
        case 4: return Over<Op, uint32_t>::run;
        default: return nullptr;
    }
}

}  // namespace

// Indexed by asc_vector_op.
const VectorOp vector_ops[ASC_VECTOR_OPS] = {
    {"Add", 2, false, true, numbers},
    {"Sub", 2, false, true, numbers},
    {"Mul", 2, false, true, numbers},
    {"Div", 2, false, false, floats},
    {"Max", 2, false, true, numbers},
    {"Min", 2, false, true, numbers},
    {"And", 2, false, false, words16},
    {"Or", 2, false, false, words16},
    {"AddRelu", 2, false, true, floats | bit_of(ASC_I16)},
    {"SubRelu", 2, false, true, floats | bit_of(ASC_I16)},
    {"MulAddDst", 2, true, true, floats},
    {"FusedMulAdd", 2, true, false, floats},
    {"FusedMulAddRelu", 2, true, false, floats},
    {"Exp", 1, false, false, floats},
    {"Ln", 1, false, false, floats},
    {"Abs", 1, false, false, floats},
    {"Sqrt", 1, false, false, floats},
    {"Rsqrt", 1, false, false, floats},
    {"Reciprocal", 1, false, false, floats},
    {"Relu", 1, false, false, floats | bit_of(ASC_I32)},
    {"Not", 1, false, false, words16},
    {"Copy", 1, false, false, movable},
    {"Adds", 1, false, false, numbers},
    {"Muls", 1, false, false, numbers},
    {"Maxs", 1, false, false, numbers},
    {"Mins", 1, false, false, numbers},
    {"LeakyRelu", 1, false, false, floats},
    {"Axpy", 1, true, true, floats},
    {"ShiftLeft", 1, false, false, words16 | words32},
    {"ShiftRight", 1, false, false, words16 | words32},
    {"Duplicate", 0, false, false, movable},
};

Kernel vector_kernel(uint32_t op, uint32_t dtype, uint32_t src_dtype) {
    switch (op) {
        case ASC_ADD: return for_numbers<Add>(dtype);
        case ASC_SUB: return for_numbers<Sub>(dtype);
        case ASC_MUL: return for_numbers<Mul>(dtype);
        case ASC_DIV: return for_floats<Div>(dtype);
        case ASC_MAX: return for_numbers<Max>(dtype);
        case ASC_MIN: return for_numbers<Min>(dtype);
        case ASC_AND: return for_words<And>(dtype);
        case ASC_OR: return for_words<Or>(dtype);
        case ASC_ADDRELU: return for_numbers<AddRelu>(dtype);
        case ASC_SUBRELU: return for_numbers<SubRelu>(dtype);
        case ASC_MULADDDST:
            return dtype == ASC_F32 && src_dtype == ASC_F16 ? mul_add_mixed : for_floats<MulAddDst>(dtype);
        case ASC_FUSEDMULADD: return for_floats<FusedMulAdd>(dtype);
        case ASC_FUSEDMULADDRELU: return for_floats<FusedMulAddRelu>(dtype);
        case ASC_EXP: return for_floats<Exp>(dtype);
        case ASC_LN: return for_floats<Ln>(dtype);
        case ASC_ABS: return for_floats<Abs>(dtype);
        case ASC_SQRT: return for_floats<Sqrt>(dtype);
        case ASC_RSQRT: return dtype == ASC_F32 ? Over<Tabled<Rsqrt>, float>::run : for_floats<Rsqrt>(dtype);
        case ASC_RECIPROCAL:
            return dtype == ASC_F32 ? Over<Tabled<Reciprocal>, float>::run : for_floats<Reciprocal>(dtype);
        case ASC_RELU: return for_numbers<Relu>(dtype);
        case ASC_NOT: return for_words<Not>(dtype);
        case ASC_COPY: return for_bits<Copy>(dtype);
        case ASC_ADDS: return for_numbers<Adds>(dtype);
        case ASC_MULS: return for_numbers<Muls>(dtype);
        case ASC_MAXS: return for_numbers<Maxs>(dtype);
        case ASC_MINS: return for_numbers<Mins>(dtype);
        case ASC_LEAKYRELU: return for_floats<LeakyRelu>(dtype);
        case ASC_AXPY: return dtype == ASC_F32 && src_dtype == ASC_F16 ? axpy_mixed : for_floats<Axpy>(dtype);
        case ASC_SHIFTLEFT: return for_words<ShiftLeft>(dtype);
        case ASC_SHIFTRIGHT: return for_words<ShiftRight>(dtype);
        case ASC_DUPLICATE: return for_bits<Duplicate>(dtype);
        default: return nullptr;
    }
}

namespace {
template <class T>
void combine_as(uint32_t mode, uint8_t *data, const uint8_t *old, size_t n) {
    switch (mode) {
        case 1: return Over<Add, T>::run(data, old, data, 0, n);
        case 2: return Over<Max, T>::run(data, old, data, 0, n);
        default: return Over<Min, T>::run(data, old, data, 0, n);
    }
}

void combine_bfloats(uint32_t mode, uint8_t *data, const uint8_t *old, size_t n) {
    Row<uint16_t> *d = reinterpret_cast<Row<uint16_t> *>(data);
    const Row<uint16_t> *o = reinterpret_cast<const Row<uint16_t> *>(old);
    for (size_t i = 0; i < n; ++i) {
        const float a = float_from_bfloat(o[i]), b = float_from_bfloat(d[i]);
        d[i] = bfloat_from_float(mode == 1 ? a + b : (mode == 2 ? larger(a, b) : smaller(a, b)));
    }
}
}  // namespace

void combine(uint32_t mode, uint32_t dtype, uint8_t *data, const uint8_t *old, size_t n) {
    switch (dtype) {
        case ASC_F32: return combine_as<float>(mode, data, old, n);
        case ASC_F16: return combine_as<Half>(mode, data, old, n);
        case ASC_BF16: return combine_bfloats(mode, data, old, n);
        case ASC_I8: return combine_as<int8_t>(mode, data, old, n);
        case ASC_I16: return combine_as<int16_t>(mode, data, old, n);
        case ASC_I32: return combine_as<int32_t>(mode, data, old, n);
        default: return;
    }
}

}  // namespace sim

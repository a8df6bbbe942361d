#include "library_numerics.h"

#include <algorithm>

#include "dtype.h"
#include "elementary.h"

namespace sim {

namespace {
using namespace elementary;

// ---- single elements, in double ------------------------------------------------------------------------------------

double down(double x) {
    if (!(absolute(x) < 0x1p52)) return x;
    const double rounded = (x + nearest) - nearest;
    return with_sign(rounded > x ? rounded - 1 : rounded, x);
}
double up(double x) { return -down(-x); }
double to_nearest(double x) { return absolute(x) < 0x1p52 ? with_sign((x + nearest) - nearest, x) : x; }
double toward_zero(double x) { return x < 0 ? up(x) : down(x); }
double fraction(double x) { return x - toward_zero(x); }
double sign(double x) { return x > 0 ? 1 : (x < 0 ? -1 : x); }
double gelu(double x) { return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))); }  // the tanh form
double faster_gelu(double x) { return x / (1 + exp(-1.702 * x)); }
double faster_gelu_v2(double x) {  // a parabola in place of erf
    const double a = absolute(x) * 0.7071067811865476, near = (a < 1.769 ? a : 1.769) - 1.769;
    return x * (sign(x) * (-0.1444 * near * near + 0.5) + 0.5);
}
double silu(double x) { return x / (1 + exp(-x)); }
double swish(double x, double, double beta) { return x / (1 + exp(-beta * x)); }
double raise(double x, double y, double) { return power(x, y); }
double remainder_of(double x, double y, double) { return fmod(x, y); }
double swiglu(double x, double y, double beta) { return x * (y / (1 + exp(-beta * y))); }
double geglu(double x, double y, double) { return x * gelu(y); }
double reglu(double x, double y, double) { return x * (y < 0 ? 0 : y); }
double clamp_max(double x, double, double limit) { return x < limit || x != x ? x : limit; }
double clamp_min(double x, double, double limit) { return x > limit || x != x ? x : limit; }

// ---- rows ----------------------------------------------------------------------------------------------------------

template <double (*F)(double)>
struct One {
    static double f(double x, double, double) { return F(x); }
};
template <double (*F)(double, double, double)>
struct Two {
    static double f(double x, double y, double s) { return F(x, y, s); }
};

template <class Op>
void over_floats(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t scalar, size_t n) {
    Row<float> *d = reinterpret_cast<Row<float> *>(dst);
    const Row<float> *x = reinterpret_cast<const Row<float> *>(a), *y = reinterpret_cast<const Row<float> *>(b ? b : a);
    const double s = float_of(static_cast<uint32_t>(scalar));
    for (size_t i = 0; i < n; ++i) d[i] = canonical(static_cast<float>(Op::f(x[i], y[i], s)));
}

template <class Op, bool scalar_is_float = false>
void over_halves(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t scalar, size_t n) {
    Row<uint16_t> *d = reinterpret_cast<Row<uint16_t> *>(dst);
    const Row<uint16_t> *x = reinterpret_cast<const Row<uint16_t> *>(a),
                        *y = reinterpret_cast<const Row<uint16_t> *>(b ? b : a);
    const double s =
        scalar_is_float ? float_of(static_cast<uint32_t>(scalar)) : float_from_half(static_cast<uint16_t>(scalar));
    float left[half_chunk], right[half_chunk];
    for (size_t at = 0; at < n; at += half_chunk) {
        const size_t m = std::min(half_chunk, n - at);
        for (size_t i = 0; i < m; ++i) left[i] = float_from_half(x[at + i]);
        for (size_t i = 0; i < m; ++i) right[i] = float_from_half(y[at + i]);
        for (size_t i = 0; i < m; ++i) left[i] = static_cast<float>(Op::f(left[i], right[i], s));
        for (size_t i = 0; i < m; ++i) d[at + i] = half_from_float(left[i]);
    }
}

template <class Op, bool scalar_is_float = false>
Kernel for_floats(uint32_t dtype) {
    switch (dtype) {
        case ASC_F32: return over_floats<Op>;
        case ASC_F16: return over_halves<Op, scalar_is_float>;
        default: return nullptr;
    }
}

void xor_words(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t, size_t n) {
    for (size_t i = 0; i < 2 * n; ++i) dst[i] = a[i] ^ b[i];
}

int32_t whole_power(int32_t base, int32_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 ? -1 : 1) : 0);
    uint32_t result = 1, factor = static_cast<uint32_t>(base);
    for (uint32_t e = static_cast<uint32_t>(exponent); e; e >>= 1, factor *= factor) {
        if (e & 1) result *= factor;
    }
    return static_cast<int32_t>(result);
}

void power_of_ints(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t, size_t n) {
    Row<int32_t> *d = reinterpret_cast<Row<int32_t> *>(dst);
    const Row<int32_t> *x = reinterpret_cast<const Row<int32_t> *>(a), *y = reinterpret_cast<const Row<int32_t> *>(b);
    for (size_t i = 0; i < n; ++i) d[i] = whole_power(x[i], y[i]);
}

}  // namespace

// Indexed by asc_library_op.
const LibraryOp library_ops[ASC_LIBRARY_OPS] = {
    {"Tanh", 1, 1, floats},         {"Sigmoid", 1, 1, floats}, {"Erf", 1, 3, floats},
    {"Erfc", 1, 7, floats},         {"Sin", 1, 3, floats},     {"Cos", 1, 3, floats},
    {"Tan", 1, 4, floats},          {"Asin", 1, 2, floats},    {"Acos", 1, 2, floats},
    {"Atan", 1, 5, floats},         {"Sinh", 1, 2, floats},    {"Cosh", 1, 2, floats},
    {"Asinh", 1, 3, floats},        {"Acosh", 1, 1, floats},   {"Atanh", 1, 1, floats},
    {"Floor", 1, 1, floats},        {"Ceil", 1, 1, floats},    {"Round", 1, 1, floats},
    {"Trunc", 1, 1, floats},        {"Frac", 1, 1, floats},    {"Sign", 1, 3, floats},
    {"Log", 1, 0, floats},          {"Log2", 1, 0, floats},    {"Log10", 1, 0, floats},
    {"Exp<taylor>", 1, 3, floats},  {"Gelu", 1, 3, floats},    {"FasterGelu", 1, 2, floats},
    {"FasterGeluV2", 1, 3, floats}, {"Silu", 1, 0, floats},    {"Swish", 1, 0, floats},
    {"Lgamma", 1, 8, floats},       {"Digamma", 1, 7, floats}, {"Power", 2, 6, floats | bit_of(ASC_I32)},
    {"Fmod", 2, 2, floats},         {"Xor", 2, 1, words16},    {"SwiGLU", 2, 2, floats},
    {"GeGLU", 2, 3, floats},        {"ReGlu", 2, 1, floats},   {"ClampMax", 1, 1, floats},
    {"ClampMin", 1, 1, floats},
};

Kernel library_kernel(uint32_t op, uint32_t dtype) {
    switch (op) {
        case ASC_TANH: return for_floats<One<elementary::tanh>>(dtype);
        case ASC_SIGMOID: return for_floats<One<sigmoid>>(dtype);
        case ASC_ERF: return for_floats<One<elementary::erf>>(dtype);
        case ASC_ERFC: return for_floats<One<elementary::erfc>>(dtype);
        case ASC_SIN: return for_floats<One<elementary::sin>>(dtype);
        case ASC_COS: return for_floats<One<elementary::cos>>(dtype);
        case ASC_TAN: return for_floats<One<elementary::tan>>(dtype);
        case ASC_ASIN: return for_floats<One<elementary::asin>>(dtype);
        case ASC_ACOS: return for_floats<One<elementary::acos>>(dtype);
        case ASC_ATAN: return for_floats<One<elementary::atan>>(dtype);
        case ASC_SINH: return for_floats<One<elementary::sinh>>(dtype);
        case ASC_COSH: return for_floats<One<elementary::cosh>>(dtype);
        case ASC_ASINH: return for_floats<One<elementary::asinh>>(dtype);
        case ASC_ACOSH: return for_floats<One<elementary::acosh>>(dtype);
        case ASC_ATANH: return for_floats<One<elementary::atanh>>(dtype);
        case ASC_FLOOR: return for_floats<One<down>>(dtype);
        case ASC_CEIL: return for_floats<One<up>>(dtype);
        case ASC_ROUND: return for_floats<One<to_nearest>>(dtype);
        case ASC_TRUNC: return for_floats<One<toward_zero>>(dtype);
        case ASC_FRAC: return for_floats<One<fraction>>(dtype);
        case ASC_SIGN: return for_floats<One<sign>>(dtype);
        case ASC_LOG: return for_floats<One<elementary::log>>(dtype);
        case ASC_LOG2: return for_floats<One<elementary::log2>>(dtype);
        case ASC_LOG10: return for_floats<One<elementary::log10>>(dtype);
        case ASC_EXPHIGH: return for_floats<One<elementary::exp>>(dtype);
        case ASC_GELU: return for_floats<One<gelu>>(dtype);
        case ASC_FASTERGELU: return for_floats<One<faster_gelu>>(dtype);
        case ASC_FASTERGELUV2: return for_floats<One<faster_gelu_v2>>(dtype);
        case ASC_SILU: return for_floats<One<silu>>(dtype);
        case ASC_SWISH: return for_floats<Two<swish>>(dtype);
        case ASC_LGAMMA: return for_floats<One<elementary::lgamma>>(dtype);
        case ASC_DIGAMMA: return for_floats<One<digamma>>(dtype);
        case ASC_POWER: return dtype == ASC_I32 ? power_of_ints : for_floats<Two<raise>>(dtype);
        case ASC_FMOD: return for_floats<Two<remainder_of>>(dtype);
        case ASC_XOR: return dtype == ASC_I16 || dtype == ASC_U16 ? xor_words : nullptr;
        case ASC_SWIGLU: return for_floats<Two<swiglu>, true>(dtype);
        case ASC_GEGLU: return for_floats<Two<geglu>>(dtype);
        case ASC_REGLU: return for_floats<Two<reglu>>(dtype);
        case ASC_CLAMPMAX: return for_floats<Two<clamp_max>>(dtype);
        case ASC_CLAMPMIN: return for_floats<Two<clamp_min>>(dtype);
        default: return nullptr;
    }
}

}  // namespace sim

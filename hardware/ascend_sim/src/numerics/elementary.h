// Elementary functions built from additions and multiplications alone, so that every machine gives the same bits.
//
// Arguments are floats widened to double; the caller rounds results to float. All functions have a relative error below
// 1e-11, which leaves results within one unit in the last place of the rounded exact value. Most are branch-free, so
// that loops over them become vector code. Coefficients: Taylor series, or Chebyshev fits made for this project.
#pragma once
#include <cstdint>

#include "half.h"

namespace sim::elementary {

inline constexpr double infinity = __builtin_inf(), nan = __builtin_nan("");
inline constexpr double pi = 3.14159265358979323846, half_pi = pi / 2;
inline constexpr double ln2_high = 0.6931471803691238, ln2_low = 1.9082149292705877e-10;  // the first has 32 bits
inline constexpr double log2_e = 1.4426950408889634, inverse_ln10 = 0.43429448190325183;
inline constexpr double nearest = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer

inline double absolute(double x) { return bit_cast<double>(bit_cast<uint64_t>(x) & ~(1ull << 63)); }
inline double with_sign(double magnitude, double sign) {
    return bit_cast<double>((bit_cast<uint64_t>(magnitude) & ~(1ull << 63)) |
                            (bit_cast<uint64_t>(sign) & (1ull << 63)));
}

template <size_t N>
inline double polynomial(double x, const double (&c)[N]) {  // highest power first
    double sum = c[0];
    for (size_t i = 1; i < N; ++i) sum = sum * x + c[i];
    return sum;
}

inline double exp(double x) {
    constexpr double c[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                            1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,        1.0};
    x = x > 600 ? 600 : x;
    x = x < -600 ? -600 : x;
    const double shifted = x * log2_e + nearest, k = shifted - nearest;
    const double r = (x - k * ln2_high) - k * ln2_low;
    const double scale = bit_cast<double>((bit_cast<uint64_t>(shifted) + 1023) << 52);
    return polynomial(r, c) * scale;
}

// x = m * 2^e with m around 1: returns log(m) and e.
inline double log_parts(double x, double &e) {
    constexpr double c[] = {2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
    const uint64_t bits = bit_cast<uint64_t>(x), offset = bits - 0x3fe6a09e667f3bcdull;  // from the root of 1/2
    const int32_t exponent = static_cast<int32_t>(static_cast<int64_t>(offset) >> 52);
    const double m = bit_cast<double>(bits - (static_cast<uint64_t>(static_cast<int64_t>(exponent)) << 52));
    const double s = (m - 1) / (m + 1);
    e = exponent;
    return s * polynomial(s * s, c);
}

inline double log_edges(double x, double result) {
    result = x == infinity ? infinity : result;
    result = x == 0 ? -infinity : result;
    result = x < 0 ? nan : result;
    return x == x ? result : x;
}

inline double log(double x) {
    double e;
    const double m = log_parts(x, e);
    return log_edges(x, e * ln2_high + (e * ln2_low + m));
}
inline double log2(double x) {
    double e;
    const double m = log_parts(x, e);
    return log_edges(x, e + m * log2_e);
}
inline double log10(double x) { return log(x) * inverse_ln10; }

inline double tanh(double x) {
    constexpr double c[] = {62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0};
    const double large = 1 - 2 / (exp(2 * x) + 1);
    return absolute(x) < 0.03 ? x * polynomial(x * x, c) : large;
}
inline double sinh(double x) {
    constexpr double c[] = {1.0 / 5040, 1.0 / 120, 1.0 / 6, 1.0};
    const double large = 0.5 * (exp(x) - exp(-x));
    return absolute(x) < 0.03 ? x * polynomial(x * x, c) : large;
}
inline double cosh(double x) { return 0.5 * (exp(x) + exp(-x)); }
inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

inline double erfc_positive(double x) {  // x >= 0.5
    constexpr double c[] = {
        -1.685782722328886e-07,  3.1131524194020967e-06, 2.7732362450603677e-06, -1.3613628727161029e-05,
        -2.8266023469147493e-05, 2.742812742179862e-05,  0.00017454649764042903, 4.357072422514464e-05,
        -0.0009820046630217968,  -0.0008471445994900881, 0.006997463889797377,   0.003732892469823259,
        -0.07897858109017451,    0.24165819424107765,    -0.4271858474132107,    0.25539567631051124};
    const double near = x > 12 ? 12 : x;
    return exp(-near * near) * polynomial((near - 2) / (near + 2), c);
}
inline double erf_small(double x) {
    constexpr double c[] = {-1.2711547089821422e-07, 1.6044523839624666e-06, -1.489862284147446e-05,
                            0.00012054266028326731,  -0.0008548300832069432, 0.005223977232952475,
                            -0.02686617061128781,    0.11283791670806737,    -0.3761263890318123,
                            1.1283791670955126};
    return x * polynomial(x * x, c);
}
inline double erf(double x) {
    const double a = absolute(x);
    const double large = with_sign(1 - erfc_positive(a < 0.5 ? 0.5 : a), x);
    return a < 0.75 ? erf_small(x) : (a == a ? large : x);
}
inline double erfc(double x) {
    const double tail = erfc_positive(absolute(x) < 0.5 ? 0.5 : absolute(x));
    const double large = x < 0 ? 2 - tail : tail;
    return absolute(x) < 0.75 ? 1 - erf_small(x) : (x == x ? large : x);
}

// Quarter turns and the rest of a large argument, from the bits of 2/pi.
inline double reduce_large(double x, uint64_t &quarter) {
    constexpr uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                        0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a};
    const uint64_t bits = bit_cast<uint64_t>(absolute(x));
    const int exponent = static_cast<int>(bits >> 52) - 1075;                    // x = mantissa * 2^exponent
    const uint64_t mantissa = ((bits & ((1ull << 52) - 1)) | 1ull << 52) >> 29;  // a float has 24 bits
    const unsigned from = static_cast<unsigned>(32 + exponent + 29 - 2) % 160;   // leave two bits for the quarter
    unsigned __int128 window = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned word = from / 32 + i, shift = from % 32;
        const uint64_t pair = static_cast<uint64_t>(two_over_pi[word]) << 32 | two_over_pi[word + 1];
        window = window << 32 | static_cast<uint32_t>(pair >> (32 - shift));
    }
    const unsigned __int128 product = window * mantissa;  // modulo whole turns
    quarter = static_cast<uint64_t>(product >> 126);
    const uint64_t rest = static_cast<uint64_t>(product >> 62);
    double fraction = static_cast<double>(rest >> 11) * 0x1p-53;
    if (fraction > 0.5) {
        fraction -= 1;
        ++quarter;
    }
    if (x < 0) {
        fraction = -fraction;
        quarter = 0 - quarter;
    }
    return fraction * half_pi;
}

// x = quarter * pi/2 + r, |r| <= pi/4.
inline double reduce(double x, uint64_t &quarter) {
    if (absolute(x) > 1000000.0) {
        if (!(absolute(x) < infinity)) {
            quarter = 0;
            return nan;
        }
        return reduce_large(x, quarter);
    }
    const double shifted = x * (2 / pi) + nearest, k = shifted - nearest;
    quarter = bit_cast<uint64_t>(shifted);
    return ((x - k * 1.5707963267341256) - k * 6.077100506303966e-11) - k * 2.0222662487959506e-21;
}

inline double sin_quarter(double r) {
    constexpr double c[] = {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
                            -1.0 / 5040,          1.0 / 120,        -1.0 / 6,        1.0};
    return r * polynomial(r * r, c);
}
inline double cos_quarter(double r) {
    constexpr double c[] = {1.0 / 20922789888000,
                            -1.0 / 87178291200,
                            1.0 / 479001600,
                            -1.0 / 3628800,
                            1.0 / 40320,
                            -1.0 / 720,
                            1.0 / 24,
                            -0.5,
                            1.0};
    return polynomial(r * r, c);
}
inline double sin(double x) {
    uint64_t quarter;
    const double r = reduce(x, quarter), value = quarter & 1 ? cos_quarter(r) : sin_quarter(r);
    return quarter & 2 ? -value : value;
}
inline double cos(double x) {
    uint64_t quarter;
    const double r = reduce(x, quarter), value = quarter & 1 ? sin_quarter(r) : cos_quarter(r);
    return (quarter + 1) & 2 ? -value : value;
}
inline double tan(double x) {
    uint64_t quarter;
    const double r = reduce(x, quarter), s = sin_quarter(r), c = cos_quarter(r);
    return quarter & 1 ? -c / s : s / c;
}

inline double atan(double x) {
    constexpr double c[] = {-1.0 / 31, 1.0 / 29, -1.0 / 27, 1.0 / 25, -1.0 / 23, 1.0 / 21, -1.0 / 19, 1.0 / 17,
                            -1.0 / 15, 1.0 / 13, -1.0 / 11, 1.0 / 9,  -1.0 / 7,  1.0 / 5,  -1.0 / 3,  1.0};
    const double a = absolute(x), inverse = a > 1 ? 1 / a : a;
    const bool upper = inverse > 0.4142135623730950;
    const double t = upper ? (inverse - 1) / (inverse + 1) : inverse;
    double value = t * polynomial(t * t, c) + (upper ? pi / 4 : 0);
    value = a > 1 ? half_pi - value : value;
    return with_sign(value, x);
}
inline double asin(double x) { return absolute(x) <= 1 ? atan(x / __builtin_sqrt((1 - x) * (1 + x))) : nan; }
inline double acos(double x) { return absolute(x) <= 1 ? 2 * atan(__builtin_sqrt((1 - x) / (1 + x))) : nan; }

inline double asinh(double x) {
    constexpr double c[] = {35.0 / 1152, -5.0 / 112, 3.0 / 40, -1.0 / 6, 1.0};
    const double a = absolute(x);
    return a < 0.03 ? x * polynomial(x * x, c) : with_sign(log(a + __builtin_sqrt(a * a + 1)), x);
}
inline double acosh(double x) { return x >= 1 ? log(x + __builtin_sqrt((x - 1) * (x + 1))) : nan; }
inline double atanh(double x) {
    constexpr double c[] = {1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
    return absolute(x) < 0.03 ? x * polynomial(x * x, c) : 0.5 * log((1 + x) / (1 - x));
}

double power(double x, double y);
double fmod(double x, double y);
double lgamma(double x);
double digamma(double x);

}  // namespace sim::elementary

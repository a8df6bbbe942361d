#include "conversions.h"

#include <limits>

#include "protocol/diagnostics.h"
#include "dtype.h"
#include "elementary.h"
#include "numerics.h"

namespace sim {

namespace {
constexpr uint32_t none = 1u << ASC_NONE;
constexpr uint32_t five =
    1u << ASC_RINT | 1u << ASC_FLOOR_MODE | 1u << ASC_CEIL_MODE | 1u << ASC_ROUND_MODE | 1u << ASC_TRUNC_MODE;
constexpr uint32_t odd = 1u << ASC_ODD;

struct Pair {
    uint8_t dst, src;
    uint32_t modes;
};

constexpr Pair pairs[] = {
    {ASC_F32, ASC_F16, none},        {ASC_F32, ASC_BF16, none},      {ASC_F32, ASC_I16, none},
    {ASC_F16, ASC_I8, none},         {ASC_F16, ASC_U8, none},        {ASC_F16, ASC_F32, five | odd | none},
    {ASC_BF16, ASC_F32, five},       {ASC_I32, ASC_F32, five},       {ASC_I16, ASC_F32, five},
    {ASC_I64, ASC_F32, five},        {ASC_F32, ASC_F32, five},       {ASC_I32, ASC_F16, five},
    {ASC_I16, ASC_F16, five},        {ASC_I32, ASC_BF16, five},      {ASC_F32, ASC_I64, five},
    {ASC_I8, ASC_F16, five | none},  {ASC_U8, ASC_F16, five | none}, {ASC_F16, ASC_I16, five | none},
    {ASC_F32, ASC_I32, five | none}, {ASC_I16, ASC_I32, none},       {ASC_I64, ASC_I32, none},
    {ASC_I32, ASC_I64, none},        {ASC_F16, ASC_I32, none},  // with a scale of 1
    {ASC_F16, ASC_I4, none},         {ASC_I4, ASC_F16, five | none},
};

// Rounds to a whole number; whole numbers stay exact.
double to_whole(double x, uint32_t round) {  // CAST_NONE rounds like CAST_RINT
    using elementary::absolute;
    using elementary::nearest;
    if (!(absolute(x) < 0x1p52)) return x;
    const double a = absolute(x), even = (a + nearest) - nearest,
                 down = even > a ? even - 1 : even;  // of the magnitude
    double whole = even;
    const bool inexact = down != a;
    switch (round) {
        case ASC_FLOOR_MODE: whole = down + (inexact && x < 0); break;
        case ASC_CEIL_MODE: whole = down + (inexact && x > 0); break;
        case ASC_ROUND_MODE: whole = down + (a - down >= 0.5); break;
        case ASC_TRUNC_MODE: whole = down; break;
        case ASC_ODD: {
            const double half = down * 0.5;
            const bool is_even = (half + nearest) - nearest == half;
            whole = down + (inexact && is_even);
            break;
        }
        default: break;
    }
    return elementary::with_sign(whole, x);
}

// Rounds to a format with `digits` bits of precision whose smallest normal exponent is `lowest`.
double to_format(double x, int digits, int lowest, double largest, uint32_t round) {
    const double a = elementary::absolute(x);
    if (a == 0 || !(a < elementary::infinity)) return x;
    int exponent = static_cast<int>(bit_cast<uint64_t>(a) >> 52) - 1023;
    if (exponent < lowest) exponent = lowest;
    const int shift = digits - 1 - exponent;
    const double up = bit_cast<double>(static_cast<uint64_t>(shift + 1023) << 52),
                 down = bit_cast<double>(static_cast<uint64_t>(1023 - shift) << 52);
    const double rounded = to_whole(x * up, round) * down;
    if (elementary::absolute(rounded) <= largest) return rounded;
    const bool toward_zero = round == ASC_TRUNC_MODE || round == ASC_ODD || (round == ASC_FLOOR_MODE && x > 0) ||
                             (round == ASC_CEIL_MODE && x < 0);
    return elementary::with_sign(toward_zero ? largest : elementary::infinity, x);
}

float to_float(double x, uint32_t round) {
    if (round == ASC_RINT || round == ASC_NONE) return static_cast<float>(x);
    return static_cast<float>(to_format(x, 24, -126, std::numeric_limits<float>::max(), round));
}

// 64-bit integers lose bits in double. A lost bit is recorded in the last place, so that rounding to float is right.
double wide_value(int64_t x) {
    uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    double scale = x < 0 ? -1 : 1;
    if (magnitude >> 52) {
        magnitude = magnitude >> 12 | ((magnitude & 0xfff) != 0);
        scale *= 4096;
    }
    return static_cast<double>(magnitude) * scale;
}

}  // namespace

double value_of(uint32_t dtype, const uint8_t *at) {
    switch (dtype) {
        case ASC_F32: return *reinterpret_cast<const Row<float> *>(at);
        case ASC_F16: return float_from_half(*reinterpret_cast<const Row<uint16_t> *>(at));
        case ASC_BF16: return float_from_bfloat(*reinterpret_cast<const Row<uint16_t> *>(at));
        case ASC_I8: return *reinterpret_cast<const Row<int8_t> *>(at);
        case ASC_U8: return *at;
        case ASC_I16: return *reinterpret_cast<const Row<int16_t> *>(at);
        case ASC_I32: return *reinterpret_cast<const Row<int32_t> *>(at);
        case ASC_I64: return wide_value(*reinterpret_cast<const Row<int64_t> *>(at));
        default: return 0;
    }
}

namespace {

// Saturates; not-a-number becomes 0.
template <class T>
void put_whole(uint8_t *at, double x, uint32_t round) {
    const double whole = to_whole(x, round);
    constexpr T lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
    T value = 0;
    if (whole >= static_cast<double>(highest)) value = highest;
    else if (whole <= static_cast<double>(lowest)) value = lowest;
    else if (whole == whole) value = static_cast<T>(whole);
    *reinterpret_cast<Row<T> *>(at) = value;
}

}  // namespace

void put_value(uint32_t dtype, uint8_t *at, double x, uint32_t round) {
    switch (dtype) {
        case ASC_F32: *reinterpret_cast<Row<float> *>(at) = canonical(to_float(x, round)); return;
        case ASC_F16: {
            const bool plain = round == ASC_RINT || round == ASC_NONE;
            *reinterpret_cast<Row<uint16_t> *>(at) =
                half_from_float(static_cast<float>(plain ? x : to_format(x, 11, -14, 65504, round)));
            return;
        }
        case ASC_BF16: {
            const double largest = float_from_bfloat(0x7f7f);
            const double rounded = round == ASC_RINT ? x : to_format(x, 8, -126, largest, round);
            *reinterpret_cast<Row<uint16_t> *>(at) = bfloat_from_float(static_cast<float>(rounded));
            return;
        }
        case ASC_I8: return put_whole<int8_t>(at, x, round);
        case ASC_U8: return put_whole<uint8_t>(at, x, round);
        case ASC_I16: return put_whole<int16_t>(at, x, round);
        case ASC_I32: return put_whole<int32_t>(at, x, round);
        case ASC_I64: return put_whole<int64_t>(at, x, round);
        default: return;
    }
}

namespace {

template <class To, class From, class Convert>
void loop(uint8_t *dst, const uint8_t *src, size_t n, Convert convert) {
    Row<To> *to = reinterpret_cast<Row<To> *>(dst);
    const Row<From> *from = reinterpret_cast<const Row<From> *>(src);
    for (size_t i = 0; i < n; ++i) to[i] = convert(from[i]);
}

// The pairs that kernels use most, in loops that the compiler vectorises.
bool convert_quickly(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round, uint8_t *dst, const uint8_t *src,
                     size_t n) {
    const bool plain = round == ASC_RINT || round == ASC_NONE;
    if (dst_dtype == ASC_F32 && src_dtype == ASC_F16) {
        loop<float, uint16_t>(dst, src, n, [](uint16_t x) { return canonical(float_from_half(x)); });
    } else if (dst_dtype == ASC_F32 && src_dtype == ASC_BF16) {
        loop<float, uint16_t>(dst, src, n, [](uint16_t x) { return canonical(float_from_bfloat(x)); });
    } else if (dst_dtype == ASC_F16 && src_dtype == ASC_F32 && plain) {
        loop<uint16_t, float>(dst, src, n, half_from_float);
    } else if (dst_dtype == ASC_BF16 && src_dtype == ASC_F32 && plain) {
        loop<uint16_t, float>(dst, src, n, bfloat_from_float);
    } else if (dst_dtype == ASC_F32 && src_dtype == ASC_I32 && plain) {
        loop<float, int32_t>(dst, src, n, [](int32_t x) { return static_cast<float>(x); });
    } else if (dst_dtype == ASC_I64 && src_dtype == ASC_I32) {
        loop<int64_t, int32_t>(dst, src, n, [](int32_t x) { return static_cast<int64_t>(x); });
    } else if (dst_dtype == ASC_I32 && src_dtype == ASC_I64) {  // exact where double is not
        loop<int32_t, int64_t>(dst, src, n, [](int64_t x) {
            return static_cast<int32_t>(x > INT32_MAX ? INT32_MAX : (x < INT32_MIN ? INT32_MIN : x));
        });
    } else {
        return false;
    }
    return true;
}

}  // namespace

uint8_t four_bits(double x, uint32_t round) {
    const double whole = to_whole(x, round);
    return static_cast<uint8_t>(whole != whole ? 0 : static_cast<int>(whole < -8 ? -8 : whole > 7 ? 7 : whole)) & 15;
}

uint32_t cast_modes(uint32_t dst_dtype, uint32_t src_dtype) {
    for (const Pair &pair : pairs) {
        if (pair.dst == dst_dtype && pair.src == src_dtype) return pair.modes;
    }
    return 0;
}

std::string value_text(uint32_t dtype, const uint8_t *at) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, bytes_of_dtype(dtype));
    switch (dtype) {
        case ASC_F32:
        case ASC_F16:
        case ASC_BF16: return text("%.9g", value_of(dtype, at));
        case ASC_I8: return std::to_string(static_cast<int8_t>(bits));
        case ASC_I16: return std::to_string(static_cast<int16_t>(bits));
        case ASC_I32: return std::to_string(static_cast<int32_t>(bits));
        case ASC_I64: return std::to_string(static_cast<int64_t>(bits));
        default: return std::to_string(bits);
    }
}

void convert(uint32_t dst_dtype, uint32_t src_dtype, uint32_t round, uint8_t *dst, const uint8_t *src, size_t n) {
    if (convert_quickly(dst_dtype, src_dtype, round, dst, src, n)) return;
    const uint32_t to = bytes_of_dtype(dst_dtype), from = bytes_of_dtype(src_dtype);
    // float -> float rounds to a whole number, every other pair to the destination's format.
    const bool to_whole_float = dst_dtype == ASC_F32 && src_dtype == ASC_F32;
    for (size_t i = 0; i < n; ++i) {
        const double x = value_of(src_dtype, src + i * from);
        if (to_whole_float) put_value(ASC_F32, dst + i * to, to_whole(x, round), ASC_RINT);
        else put_value(dst_dtype, dst + i * to, x, round);
    }
}

}  // namespace sim

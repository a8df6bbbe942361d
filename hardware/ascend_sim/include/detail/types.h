// The basic vocabulary: qualifiers, element types, enumerations and constants.
#pragma once
#include <cstdint>
#include <type_traits>  // for kernels

#include "../abi.h"

#define __aicore__
#define __host_aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __inout_pipe__(...)
// The launch reads these in the preprocessed text, where they are removed.
#define __global__ __global__
#define __vector__ __vector__
#define __cube__ __cube__
#define __mix__(...) __mix__(__VA_ARGS__)
#define GM_ADDR uint8_t *
#define ASCENDC_SIMULATOR 1
#define __NPU_ARCH__ 2201
#define __CCE_AICORE__ 220
// What g++ does not know; its argument is not evaluated.
#define __builtin_assume(...) ((void)0)

// Header code around an API call is not the author's plain code, so it is not counted as basic blocks. Functions that
// only compute are: they cost what the same arithmetic in a kernel costs. Code that is not counted must not call functions
// of the author's, since it would evaluate their default arguments: it takes classes of these headers, and numbers.
// Functions that compute and are neither counted nor priced (operations.py) begin with `asc_`, a prefix that no kernel may
// write: neither a private section nor a namespace keeps it from calling one.
#define ASC_UNCOUNTED __attribute__((no_sanitize_coverage))
#define ASC_INLINE inline ASC_UNCOUNTED

namespace asc {

// The line of a call. Every API function ends in `asc::At at = ASC_HERE`; no number converts to it by mistake.
struct At { int32_t line; };
#define ASC_HERE {__builtin_LINE()}

// What types are: not the traits of std, which an author could specialise.
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <class T, class... Listed> constexpr bool one_of = (same<T, Listed> || ...);
template <class T> constexpr bool integral =
    one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short, unsigned short, int, unsigned,
           long, unsigned long, long long, unsigned long long>;
template <class T> constexpr bool arithmetic = integral<T> || one_of<T, float, double, long double>;
template <class T> constexpr bool array = false;
template <class T> constexpr bool array<T[]> = true;
template <class T, uint64_t size> constexpr bool array<T[size]> = true;
template <class T> constexpr bool pointer = false;
template <class T> constexpr bool pointer<T *> = true;
template <class T> struct Referred { using type = T; };
template <class T> struct Referred<T &> { using type = T; };
template <class T> struct Referred<T &&> { using type = T; };
template <class T> using referred = typename Referred<T>::type;
template <bool holds> struct If {};
template <> struct If<true> { using type = void; };
template <bool holds> using if_holds = typename If<holds>::type;

// Holds for nothing. A function of the author's is nearer than a template with such a pack at its end.
template <class... None> using if_none = if_holds<!sizeof...(None)>;
// Holds for two types of integers, with nothing behind them.
template <class A, class B, class... None>
using if_mixed = if_holds<!same<A, B> && integral<A> && integral<B> && !sizeof...(None)>;

// The number of repeats of an instruction. The device has 8 bits for it and drops the others; here all bits are passed
// on and values that do not fit are rejected.
struct Repeat {
    uint64_t times;
    template <class Integer, class = if_holds<integral<Integer> || __is_enum(Integer)>>
    ASC_UNCOUNTED constexpr Repeat(Integer n) : times(static_cast<uint64_t>(n)) {}
};

// What elements, masks and messages may be: no constructor, conversion or operator of the author's.
template <class T>
constexpr bool plain = !__is_class(T) && !__is_union(T);

ASC_UNCOUNTED constexpr uint16_t half_from(float value) {
    const uint32_t all = __builtin_bit_cast(uint32_t, value), sign = all >> 16 & 0x8000u, size = all & 0x7fffffffu;
    if (size > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (size >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (size < 0x33000001u) return static_cast<uint16_t>(sign);
    if (size < 0x38800000u) {  // subnormal: shift the fraction and round to even
        const uint32_t shift = 126 - (size >> 23), fraction = (size & 0x7fffffu) | 0x800000u;
        const uint32_t kept = fraction >> shift, rest = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
        return static_cast<uint16_t>(sign | (kept + (rest > middle || (rest == middle && (kept & 1)))));
    }
    return static_cast<uint16_t>(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13);
}

ASC_UNCOUNTED constexpr float half_to(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ffu;
    if (exponent == 0)
        return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, static_cast<float>(fraction) * 0x1p-24f) | sign);
    const uint32_t top = exponent == 31 ? 255u << 23 : (exponent + 112) << 23;
    return __builtin_bit_cast(float, sign | top | fraction << 13);
}

ASC_UNCOUNTED constexpr uint16_t bfloat_from(float value) {
    const uint32_t all = __builtin_bit_cast(uint32_t, value);
    if ((all & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(all >> 16 | 0x40u);
    return static_cast<uint16_t>((all + 0x7fffu + (all >> 16 & 1)) >> 16);
}

}  // namespace asc

// 16-bit float. Its conversions and operators are counted, as plain code is.
struct half {
    uint16_t value;
    half() = default;
    constexpr half(float number) : value(asc::half_from(number)) {}
    constexpr half(double number) : half(static_cast<float>(number)) {}
    template <class Integer, class = asc::if_holds<asc::integral<Integer>>>
    constexpr half(Integer number) : half(static_cast<float>(number)) {}
    constexpr operator float() const { return asc::half_to(value); }

// Two halves give a half; a half combined with another type counts as float.
#define ASC_HALF_OPERATOR(op)                                                                                          \
    friend constexpr half operator op(half a, half b) { return half(static_cast<float>(a) op static_cast<float>(b)); } \
    template <class N, class = asc::if_holds<asc::arithmetic<N>>>                                                      \
    friend constexpr float operator op(half a, N b) {                                                                  \
        return static_cast<float>(a) op static_cast<float>(b);                                                         \
    }                                                                                                                  \
    template <class N, class = asc::if_holds<asc::arithmetic<N>>>                                                      \
    friend constexpr float operator op(N a, half b) {                                                                  \
        return static_cast<float>(a) op static_cast<float>(b);                                                         \
    }                                                                                                                  \
    half &operator op## = (float other) { return *this = half(static_cast<float>(*this) op other); }
    // clang-format off
    ASC_HALF_OPERATOR(+) ASC_HALF_OPERATOR(-) ASC_HALF_OPERATOR(*) ASC_HALF_OPERATOR(/)
// clang-format on
#undef ASC_HALF_OPERATOR
    constexpr half operator-() const { return half(-static_cast<float>(*this)); }
};

// Has no arithmetic operators: ToFloat and ToBfloat16 convert.
struct bfloat16_t {
    uint16_t value;
    bfloat16_t() = default;
    explicit constexpr bfloat16_t(float number) : value(asc::bfloat_from(number)) {}
    explicit constexpr operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16); }
};

// Two elements in a byte, the first in its lower half; 4 bits with sign.
struct int4b_t { uint8_t storage; };

using float32_t = float;
using float16_t = half;

// clang-format off
enum pipe_t : uint32_t {
    PIPE_S = ASC_S, PIPE_V = ASC_V, PIPE_M = ASC_M, PIPE_MTE1 = ASC_MTE1, PIPE_MTE2 = ASC_MTE2, PIPE_MTE3 = ASC_MTE3,
    PIPE_FIX = ASC_FIX, PIPE_ALL = ASC_ALL,
};
// clang-format on
enum event_t : int32_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
using TEventID = int32_t;

namespace asc {

template <class T> struct code_of;
#define ASC_CODE(type, number)                                                                                         \
    template <> struct code_of<type> { static constexpr uint32_t value = number; };
// clang-format off
ASC_CODE(float, ASC_F32) ASC_CODE(half, ASC_F16) ASC_CODE(bfloat16_t, ASC_BF16) ASC_CODE(int8_t, ASC_I8)
ASC_CODE(uint8_t, ASC_U8) ASC_CODE(int16_t, ASC_I16) ASC_CODE(uint16_t, ASC_U16) ASC_CODE(int32_t, ASC_I32)
ASC_CODE(uint32_t, ASC_U32) ASC_CODE(int64_t, ASC_I64) ASC_CODE(uint64_t, ASC_U64) ASC_CODE(bool, ASC_BOOL) ASC_CODE(int4b_t, ASC_I4)
// clang-format on
#undef ASC_CODE
template <class T> constexpr uint32_t dtype = code_of<T>::value;
// Packed elements are moved as bytes.
template <class T> constexpr uint32_t moved = same<T, int4b_t> ? uint32_t{ASC_I8} : dtype<T>;
}  // namespace asc

template <class T>
ASC_INLINE uint64_t asc_bits(T value) {
    union Bits {
        uint64_t bits;
        T value;
    } both{0};
    both.value = value;
    return both.bits;
}
template <class T> ASC_INLINE constexpr uint64_t asc_bytes_for(uint64_t elements) {
    return asc::same<T, int4b_t> ? elements / 2 : elements * sizeof(T);
}
template <class T> ASC_INLINE constexpr uint64_t asc_elements_in(uint64_t bytes) {
    return asc::same<T, int4b_t> ? bytes * 2 : bytes / sizeof(T);
}

#define ASC_ELEMENTS(name, T)                                                                                          \
    static_assert(asc::plain<T> || asc::one_of<T, half, bfloat16_t, int4b_t>,                                          \
                  name " holds numbers; read the members of a struct one by one")

// Rejects unsupported element types and lists the supported ones.
#define ASC_TAKES(name, T, ...)                                                                                        \
    static_assert(asc::one_of<T, __VA_ARGS__>, name " takes " #__VA_ARGS__ " on Atlas A2; Cast other types first")

namespace AscendC {

using ::TEventID;

// clang-format off
enum class TPosition : uint32_t {
    GM = ASC_POS_GM, A1 = ASC_POS_A1, A2 = ASC_POS_A2, B1 = ASC_POS_B1, B2 = ASC_POS_B2, C1 = ASC_POS_C1, C2 = ASC_POS_C2,
    CO1 = ASC_POS_CO1, CO2 = ASC_POS_CO2, VECIN = ASC_POS_VECIN, VECOUT = ASC_POS_VECOUT, VECCALC = ASC_POS_VECCALC,
    LCM = VECCALC, SPM = ASC_POS_SPM, SHM = SPM, TSCM = ASC_POS_TSCM, C2PIPE2GM = ASC_POS_C2PIPE2GM,
};
// clang-format on
using QuePosition = TPosition;

enum class Hardware : uint32_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF };
enum class RoundMode : uint32_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class CMPMODE : uint32_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint32_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint32_t { ORDER_VALUE_INDEX, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType : uint32_t { SUM = ASC_REDUCE_SUM, MAX = ASC_REDUCE_MAX, MIN = ASC_REDUCE_MIN };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class CacheMode { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL, CACHE_MODE_LAST, CACHE_MODE_PERSISTENT };
enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
enum class MemDsbT { ALL, DDR, UB, SEQ };

constexpr uint32_t ONE_BLK_SIZE = 32, ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint16_t DEFAULT_BLK_STRIDE = 1, DEFAULT_DATA_COPY_NUM = 1, DEFAULT_DATA_COPY_STRIDE = 0;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8, DEFAULT_REP_STRIDE = 8, DEFAULT_BLK_NUM = 8, MAX_REPEAT_TIMES = 255;
constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};
constexpr uint32_t TOTAL_UB_SIZE = 192 * 1024, TOTAL_VEC_LOCAL_SIZE = 184 * 1024, TMP_UB_OFFSET = 184 * 1024;
constexpr uint32_t TOTAL_L1_SIZE = 512 * 1024, TOTAL_L0A_SIZE = 64 * 1024, TOTAL_L0B_SIZE = 64 * 1024,
                   TOTAL_L0C_SIZE = 128 * 1024;

template <class A, class B> struct IsSameType { static constexpr bool value = asc::same<A, B>; };
#define ASC_SAME template <class T, class... None, class = asc::if_none<None...>>
ASC_SAME constexpr T AlignUp(T value, T step, None...) { return (value + step - 1) / step * step; }
ASC_SAME constexpr T DivCeil(T value, T step, None...) { return (value + step - 1) / step; }
ASC_SAME constexpr T CeilDivision(T value, T step, None...) { return (value + step - 1) / step; }
#undef ASC_SAME
// Integers of two types give their common one. A call that names its type, `AlignUp<T>(a, b)`, cannot mean these, because
// of the number in front.
#define ASC_MIXED template <int = 0, class A, class B, class... None, class = asc::if_mixed<A, B, None...>>
ASC_MIXED constexpr auto AlignUp(A value, B step, None...) { return (value + step - 1) / step * step; }
ASC_MIXED constexpr auto DivCeil(A value, B step, None...) { return (value + step - 1) / step; }
ASC_MIXED constexpr auto CeilDivision(A value, B step, None...) { return (value + step - 1) / step; }
#undef ASC_MIXED

inline float ToFloat(bfloat16_t value) { return static_cast<float>(value); }
inline bfloat16_t ToBfloat16(float value) { return bfloat16_t(value); }

}  // namespace AscendC

// The cube at its basic level: fractals to L0, products, results out.
#pragma once
#include "copy.h"

namespace AscendC {

// In fractals of 512 bytes.
struct LoadData2DParams {
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint8_t sid = 0;
    uint16_t dstGap = 0;
    bool ifTranspose = false;
    uint8_t addrMode = 0;
    constexpr LoadData2DParams() = default;
    constexpr LoadData2DParams(uint16_t start, uint8_t repeat, uint16_t src_stride, uint8_t id, uint16_t dst_gap, bool transpose, uint8_t mode)
        : startIndex(start), repeatTimes(repeat), srcStride(src_stride), sid(id), dstGap(dst_gap), ifTranspose(transpose), addrMode(mode) {}
};

struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
};

enum QuantMode_t : uint32_t { NoQuant, F322F16, F322BF16 };
struct FixpipeConfig {
    bool rowMajor;
};
inline constexpr FixpipeConfig CFG_ROW_MAJOR{true};

struct FixpipeParamsV220 {
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

template <class T> ASC_INLINE void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData2DParams &p, At at = ASC_HERE) {
    ASC_TAKES("LoadData", T, half, bfloat16_t, float, int8_t, uint8_t);
    asc_load_fractals(dst.where(), src.where(), {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.ifTranspose}, asc::dtype<T>, at.line);
}

#define ASC_MULTIPLIES(D, A, B)                                                                                        \
    static_assert(std::is_same_v<A, B>, "Mmad multiplies two operands of one type");                                   \
    static_assert(std::is_same_v<D, std::conditional_t<std::is_same_v<A, int8_t>, int32_t, float>>, "Mmad gives float, or int32_t from int8_t")

// C = A B, or C += A B without cmatrixInitVal.
template <class D, class A, class B>
ASC_INLINE void Mmad(const LocalTensor<D> &dst, const LocalTensor<A> &fm, const LocalTensor<B> &filter, const MmadParams &p, At at = ASC_HERE) {
    ASC_TAKES("Mmad", A, half, bfloat16_t, float, int8_t);
    ASC_MULTIPLIES(D, A, B);
    asc_mmad(dst.where(), fm.where(), filter.where(), {0, 0, ASC_BT}, asc::dtype<D>, asc::dtype<A>, {p.m, p.n, p.k, p.cmatrixInitVal, 0}, at.line);
}
template <class D, class A, class B, class Bias>
ASC_INLINE void Mmad(const LocalTensor<D> &dst, const LocalTensor<A> &fm, const LocalTensor<B> &filter, const LocalTensor<Bias> &bias, const MmadParams &p, At at = ASC_HERE) {
    ASC_TAKES("Mmad", A, half, bfloat16_t, float, int8_t);
    ASC_MULTIPLIES(D, A, B);
    static_assert(std::is_same_v<Bias, D>, "Mmad's bias has the type of its result");
    asc_mmad(dst.where(), fm.where(), filter.where(), bias.where(), asc::dtype<D>, asc::dtype<A>, {p.m, p.n, p.k, p.cmatrixInitVal, 1}, at.line);
}
#undef ASC_MULTIPLIES

// L0C to global memory, row by row; the type of the destination says what the elements become.
template <class D, class S, const FixpipeConfig &config = CFG_ROW_MAJOR>
ASC_INLINE void Fixpipe(const GlobalTensor<D> &dst, const LocalTensor<S> &src, const FixpipeParamsV220 &p, At at = ASC_HERE) {
    static_assert(config.rowMajor, "the simulator's Fixpipe writes rows");
    static_assert(std::is_same_v<D, S> || (std::is_same_v<S, float> && asc::one_of<D, half, bfloat16_t>), "Fixpipe keeps the type or takes float to half or bfloat16_t");
    asc_fixpipe(dst.where(), src.where(), asc::dtype<D>, asc::dtype<S>, {p.mSize, p.nSize, p.srcStride, p.dstStride, p.reluEn}, at.line);
}

}  // namespace AscendC

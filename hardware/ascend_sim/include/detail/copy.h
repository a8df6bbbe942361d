// Copies between global and on-chip memory, and within on-chip memory.
#pragma once
#include "tensor.h"

namespace AscendC {

// Lengths and gaps are in blocks of 32 bytes (DataCopyPad: the length and the gap on the global side are in bytes).
struct DataCopyParams {
    uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
    constexpr DataCopyParams() = default;
    constexpr DataCopyParams(uint16_t count, uint16_t length, uint16_t src_gap, uint16_t dst_gap)
        : blockCount(count), blockLen(length), srcStride(src_gap), dstStride(dst_gap) {}
};

// The length and the gap on the global side are in bytes, the gap on the on-chip side in blocks of 32 bytes.
struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
    constexpr DataCopyExtParams() = default;
    constexpr DataCopyExtParams(uint16_t count, uint32_t length, uint32_t src_gap, uint32_t dst_gap, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(src_gap), dstStride(dst_gap), rsv(reserved) {}
};

struct DataCopyPadParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    uint64_t paddingValue = 0;
    constexpr DataCopyPadParams() = default;
    constexpr DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

template <class T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = T(0);
    constexpr DataCopyPadExtParams() = default;
    constexpr DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

struct Nd2NzParams {
    uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0, dstNzC0Stride = 0,
             dstNzNStride = 0, dstNzMatrixStride = 0;
    constexpr Nd2NzParams() = default;
    constexpr Nd2NzParams(uint16_t nd, uint16_t n, uint16_t d, uint16_t nd_stride, uint16_t d_value, uint16_t c0,
                          uint16_t n_stride, uint16_t nz)
        : ndNum(nd), nValue(n), dValue(d), srcNdMatrixStride(nd_stride), srcDValue(d_value), dstNzC0Stride(c0),
          dstNzNStride(n_stride), dstNzMatrixStride(nz) {}
};

namespace asc_detail {
ASC_INLINE asc_burst whole(uint64_t bytes) { return {1, static_cast<uint32_t>(bytes), 0, 0}; }
ASC_INLINE asc_burst blocks(const DataCopyParams &p) {
    return {p.blockCount, p.blockLen * 32u, p.srcStride * 32u, p.dstStride * 32u};
}
// The padded forms count the on-chip side in blocks and the global side in bytes.
template <class P> ASC_INLINE asc_burst bytes_in(const P &p) {
    static_assert(asc::one_of<P, DataCopyParams, DataCopyExtParams>, "takes the parameters of DataCopyPad");
    return {p.blockCount, p.blockLen, p.srcStride, p.dstStride * 32ull};
}
template <class P> ASC_INLINE asc_burst bytes_out(const P &p) {
    static_assert(asc::one_of<P, DataCopyParams, DataCopyExtParams>, "takes the parameters of DataCopyPad");
    return {p.blockCount, p.blockLen, p.srcStride * 32ull, p.dstStride};
}
}  // namespace asc_detail

template <class T> ASC_INLINE void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t count,
                                            asc::At at = ASC_HERE) {
    asc_copy_in(dst.asc_where(), src.asc_where(), asc_detail::whole(asc_bytes_for<T>(count)), asc::moved<T>, 0, 0, 0, 0,
                0, at.line);
}
template <class T> ASC_INLINE void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count,
                                            asc::At at = ASC_HERE) {
    asc_copy_out(dst.asc_where(), src.asc_where(), asc_detail::whole(asc_bytes_for<T>(count)), asc::moved<T>, 0,
                 at.line);
}
template <class T> ASC_INLINE void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count,
                                            asc::At at = ASC_HERE) {
    asc_copy_local(dst.asc_where(), src.asc_where(), asc_detail::whole(asc_bytes_for<T>(count)), asc::moved<T>,
                   at.line);
}
template <class T> ASC_INLINE void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                                            const DataCopyParams &p, asc::At at = ASC_HERE) {
    asc_copy_in(dst.asc_where(), src.asc_where(), asc_detail::blocks(p), asc::moved<T>, 0, 0, 0, 0, 0, at.line);
}
template <class T> ASC_INLINE void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                                            const DataCopyParams &p, asc::At at = ASC_HERE) {
    asc_copy_out(dst.asc_where(), src.asc_where(), asc_detail::blocks(p), asc::moved<T>, 0, at.line);
}
template <class T> ASC_INLINE void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                            const DataCopyParams &p, asc::At at = ASC_HERE) {
    asc_copy_local(dst.asc_where(), src.asc_where(), asc_detail::blocks(p), asc::moved<T>, at.line);
}
template <class T> ASC_INLINE void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const Nd2NzParams &p,
                                            asc::At at = ASC_HERE) {
    const asc_nd2nz shape{p.ndNum,     p.nValue,        p.dValue,       p.srcNdMatrixStride,
                          p.srcDValue, p.dstNzC0Stride, p.dstNzNStride, p.dstNzMatrixStride};
    asc_copy_nd2nz(dst.asc_where(), src.asc_where(), shape, asc::dtype<T>, at.line);
}

template <class T>
ASC_INLINE void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                            const DataCopyPadExtParams<T> &pad, asc::At at = ASC_HERE) {
    asc_copy_in(dst.asc_where(), src.asc_where(), asc_detail::bytes_in(p), asc::moved<T>, 1, pad.isPad, pad.leftPadding,
                pad.rightPadding, asc_bits(pad.paddingValue), at.line);
}
template <class T>
ASC_INLINE void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p,
                            const DataCopyPadParams &pad, asc::At at = ASC_HERE) {
    asc_copy_in(dst.asc_where(), src.asc_where(), asc_detail::bytes_in(p), asc::moved<T>, 1, pad.isPad, pad.leftPadding,
                pad.rightPadding, pad.paddingValue, at.line);
}
template <class T> ASC_INLINE void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                                               const DataCopyExtParams &p, asc::At at = ASC_HERE) {
    asc_copy_out(dst.asc_where(), src.asc_where(), asc_detail::bytes_out(p), asc::moved<T>, 1, at.line);
}
template <class T> ASC_INLINE void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                                               const DataCopyParams &p, asc::At at = ASC_HERE) {
    asc_copy_out(dst.asc_where(), src.asc_where(), asc_detail::bytes_out(p), asc::moved<T>, 1, at.line);
}

template <class T> ASC_INLINE void SetPadValue(T value, asc::At at = ASC_HERE) {
    asc_set_pad_value(asc::dtype<T>, asc_bits(value), at.line);
}

// Until SetAtomicNone, copies out of UB add to the old value, or keep the larger or smaller one.
template <class T> ASC_INLINE void SetAtomicAdd(asc::At at = ASC_HERE) {
    ASC_TAKES("SetAtomicAdd", T, float, half, bfloat16_t, int8_t, int16_t, int32_t);
    asc_set_atomic(1, asc::dtype<T>, at.line);
}
template <class T> ASC_INLINE void SetAtomicMax(asc::At at = ASC_HERE) {
    ASC_TAKES("SetAtomicMax", T, float, half, bfloat16_t, int8_t, int16_t, int32_t);
    asc_set_atomic(2, asc::dtype<T>, at.line);
}
template <class T> ASC_INLINE void SetAtomicMin(asc::At at = ASC_HERE) {
    ASC_TAKES("SetAtomicMin", T, float, half, bfloat16_t, int8_t, int16_t, int32_t);
    asc_set_atomic(3, asc::dtype<T>, at.line);
}
ASC_INLINE void SetAtomicNone(asc::At at = ASC_HERE) { asc_set_atomic(0, ASC_F32, at.line); }
ASC_INLINE void DisableDmaAtomic(asc::At at = ASC_HERE) { asc_set_atomic(0, ASC_F32, at.line); }

}  // namespace AscendC

// Computes tilings from shapes, for the host function.
#pragma once
#include "../detail/tiling.h"
#include "../lib/cube_tiling.h"
#include "library_tiling.h"
#include "platform/platform_ascendc.h"

#ifndef KERNEL_GYM_HOST  // the host layer of bundles has a class of its own
namespace optiling {
using ::TCubeTiling;
}  // namespace optiling
#endif

namespace matmul_tiling {

enum class TPosition {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM = SPM,
    TSCM
};
enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class DataType { DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_BF16 = 27, DT_BFLOAT16 = DT_BF16 };

// Divides an (M, N, K) product among cores and into base blocks that fit L0.
class MultiCoreMatmulTiling {
public:
    MultiCoreMatmulTiling() = default;
    explicit MultiCoreMatmulTiling(const platform_ascendc::PlatformAscendC &) {}

    int32_t SetDim(int32_t cores) { return cores_ = cores, 0; }
    int32_t SetAType(TPosition, CubeFormat, DataType type, bool transposed = false) {
        (void)transposed;
        return element_ = type == DataType::DT_FLOAT ? 4 : type == DataType::DT_INT8 ? 1 : 2, 0;
    }
    int32_t SetBType(TPosition, CubeFormat, DataType, bool = false) { return 0; }
    int32_t SetCType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetBiasType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetShape(int32_t m, int32_t n, int32_t k) { return m_ = m, n_ = n, k_ = k, 0; }
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t k) { return whole_m_ = m, whole_n_ = n, whole_k_ = k, 0; }
    int32_t SetSingleShape(int32_t m = -1, int32_t n = -1, int32_t k = -1) {
        return single_m_ = m, single_n_ = n, single_k_ = k, 0;
    }
    int32_t SetFixSplit(int32_t m = -1, int32_t n = -1, int32_t k = -1) {
        return base_m_ = m, base_n_ = n, base_k_ = k, 0;
    }
    // Single shapes become multiples of these.
    int32_t SetAlignSplit(int32_t m, int32_t n, int32_t k) {
        return (void)k, align_m_ = m > 0 ? m : 16, align_n_ = n > 0 ? n : 16, 0;
    }
    int32_t SetBias(bool bias) { return bias_ = bias, 0; }
    int32_t EnableBias(bool bias) { return SetBias(bias); }
    int32_t SetBufferSpace(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    void SetSingleRange(int32_t = -1, int32_t = -1, int32_t = -1) {}

    int64_t GetTiling(TCubeTiling &t) {
        if (m_ <= 0 || n_ <= 0 || k_ <= 0) return -1;
        t = TCubeTiling{};
        t.M = whole_m_ > 0 ? whole_m_ : m_, t.N = whole_n_ > 0 ? whole_n_ : n_,
        t.Ka = t.Kb = whole_k_ > 0 ? whole_k_ : k_;
        cut_over_cores(t);
        cut_into_blocks(t);
        t.isBias = bias_;
        t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
        t.depthA1 = t.depthB1 = 2;
        t.dbL0A = t.dbL0B = 2;
        t.dbL0C = 1;
        return 0;
    }
    int32_t GetCoreNum(int32_t &dim, int32_t &mDim, int32_t &nDim) const {
        return dim = m_cores_ * n_cores_, mDim = m_cores_, nDim = n_cores_, 0;
    }

private:
    static int32_t ceil_div(int32_t a, int32_t b) { return (a + b - 1) / b; }
    static int32_t aligned(int32_t a, int32_t b) { return ceil_div(a, b) * b; }

    // The division with the smallest maximum part; ties go to the squarer one.
    void cut_over_cores(TCubeTiling &t) {
        int64_t best = INT64_MAX;
        for (int32_t down = 1; down <= cores_; ++down) {
            const int32_t across = cores_ / down;
            const int32_t m = aligned(ceil_div(m_, down), align_m_), n = aligned(ceil_div(n_, across), align_n_);
            const int64_t cost = static_cast<int64_t>(m) * n * 4096 + m + n;
            if (cost < best) best = cost, t.singleCoreM = m < m_ ? m : m_, t.singleCoreN = n < n_ ? n : n_;
        }
        if (single_m_ > 0) t.singleCoreM = single_m_;
        if (single_n_ > 0) t.singleCoreN = single_n_;
        t.singleCoreK = single_k_ > 0 ? single_k_ : k_;
        m_cores_ = ceil_div(m_, t.singleCoreM), n_cores_ = ceil_div(n_, t.singleCoreN);
        t.usedCoreNum = m_cores_ * n_cores_;
    }
    // Two blocks of A and of B in 64 KB each, one of C in 128 KB.
    void cut_into_blocks(TCubeTiling &t) const {
        const int32_t m = base_m_ > 0 ? base_m_ : 128, n = base_n_ > 0 ? base_n_ : 256;
        t.baseM = m < aligned(t.singleCoreM, 16) ? m : aligned(t.singleCoreM, 16);
        t.baseN = n < aligned(t.singleCoreN, 16) ? n : aligned(t.singleCoreN, 16);
        const int32_t wide = t.baseM > t.baseN ? t.baseM : t.baseN, room = (32 << 10) / (wide * element_) / 16 * 16;
        const int32_t k = base_k_ > 0 ? base_k_ : room > 16 ? room : 16;
        t.baseK = k < aligned(t.singleCoreK, 16) ? k : aligned(t.singleCoreK, 16);
    }

    int32_t cores_ = 1, element_ = 2, m_ = 0, n_ = 0, k_ = 0, whole_m_ = 0, whole_n_ = 0, whole_k_ = 0;
    int32_t single_m_ = -1, single_n_ = -1, single_k_ = -1, base_m_ = -1, base_n_ = -1, base_k_ = -1, m_cores_ = 1,
            n_cores_ = 1;
    int32_t align_m_ = 16, align_n_ = 16;
    bool bias_ = false;
};
using MatmulApiTiling = MultiCoreMatmulTiling;

}  // namespace matmul_tiling

// The high-level Matmul: C = A B (+ bias).
//
// The cube core computes from and to global memory. Operands and results in UB go through the framework's workspace, as
// they do on the device.
#pragma once
#include "../detail/copy.h"
#include "../detail/message.h"
#include "../detail/sync.h"
#include "cube_tiling.h"

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class LayoutMode { NONE, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class BatchMode { NONE, BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1, SINGLE_LARGE_THAN_L1 };

struct MatmulConfig {
    bool doNorm = true, doMultiDataLoad = false, doIBShareNorm = false, enableInit = true;
    bool enVecND2NZ = false, enableEnd = true, enableGetTensorC = true, enableSetBias = true;
};
enum class MatmulConfigMode { CONFIG_NORM, CONFIG_MDL, CONFIG_SPECIALMDL, CONFIG_IBSHARE };
constexpr MatmulConfigMode CONFIG_NORM = MatmulConfigMode::CONFIG_NORM, CONFIG_MDL = MatmulConfigMode::CONFIG_MDL;
constexpr MatmulConfig GetNormalConfig(bool = false, bool = false, bool = false, BatchMode = BatchMode::NONE,
                                       bool = true) {
    return {};
}
constexpr MatmulConfig GetMDLConfig(bool = false, bool = false, uint32_t = 0, bool = false, bool = false, bool = false,
                                    bool = true) {
    return {false, true};
}
constexpr MatmulConfig GetSpecialMDLConfig(bool = false, bool = false, uint32_t = 0, bool = false) {
    return {false, true};
}
template <MatmulConfigMode mode> constexpr MatmulConfig GetMMConfig() {
    return {mode == CONFIG_NORM, mode != CONFIG_NORM};
}
inline constexpr MatmulConfig CFG_NORM = GetNormalConfig(), CFG_MDL = GetMDLConfig(),
                              CFG_IBSHARE_NORM{true, false, true}, MM_CFG_BB = GetNormalConfig();

namespace AscendC {

template <TPosition position, CubeFormat format, class Type, bool transposed = false,
          LayoutMode layout = LayoutMode::NONE, bool shared = false>
struct MatmulType {
    static constexpr TPosition pos = position;
    static constexpr bool isTrans = transposed, isNz = format == CubeFormat::NZ;
    using T = Type;
    static_assert(format == CubeFormat::ND || format == CubeFormat::NZ || format == CubeFormat::ND_ALIGN ||
                      format == CubeFormat::VECTOR,
                  "the simulator's Matmul knows CubeFormat ND and NZ");
};

template <auto a = nullptr, auto b = nullptr, auto c = nullptr>
struct MatmulCallBackFunc {
    static_assert(a == nullptr && b == nullptr && c == nullptr, "the simulator's Matmul has no callbacks");
};

template <class A, class B, class C, class Bias = C, const auto &config = CFG_NORM,
          class Callbacks = MatmulCallBackFunc<>>
class Matmul {
public:
    using AT = typename A::T;
    using BT = typename B::T;
    using CT = typename C::T;
    using BiasT = typename Bias::T;
    static constexpr bool a_transposed = A::isTrans, b_transposed = B::isTrans;
    static constexpr bool a_fractals = A::isNz, b_fractals = B::isNz, c_fractals = C::isNz;

    ASC_INLINE void Init(const TCubeTiling *tiling, TPipe *pipe = nullptr) {
        (void)pipe;
        tiling_ = *tiling;
        SetOrgShape(tiling->M, tiling->N, tiling->Ka, tiling->Kb);
        SetSingleShape(tiling->singleCoreM, tiling->singleCoreN, tiling->singleCoreK);
    }

    ASC_INLINE void SetTensorA(const GlobalTensor<AT> &tensor, bool isTransposeA = false) {
        asc_take(a_, tensor, isTransposeA || a_transposed, a_fractals);
    }
    ASC_INLINE void SetTensorB(const GlobalTensor<BT> &tensor, bool isTransposeB = false) {
        asc_take(b_, tensor, isTransposeB || b_transposed, b_fractals);
    }
    ASC_INLINE void SetTensorA(const LocalTensor<AT> &tensor, bool isTransposeA = false, asc::At at = ASC_HERE) {
        SetTensorA(GlobalTensor<AT>(asc_spill<AT>(0, tensor, at)), isTransposeA);
    }
    ASC_INLINE void SetTensorB(const LocalTensor<BT> &tensor, bool isTransposeB = false, asc::At at = ASC_HERE) {
        SetTensorB(GlobalTensor<BT>(asc_spill<BT>(1, tensor, at)), isTransposeB);
    }
    ASC_INLINE void SetBias(const GlobalTensor<BiasT> &tensor) {
        bias_ = {tensor.asc_where(), asc::dtype<BiasT>, 0, 0};
        with_bias_ = true;
    }
    ASC_INLINE void SetBias(const LocalTensor<BiasT> &tensor, asc::At at = ASC_HERE) {
        SetBias(GlobalTensor<BiasT>(asc_spill<BiasT>(2, tensor, at)));
    }
    ASC_INLINE void ClearBias() { with_bias_ = false; }
    ASC_INLINE void DisableBias() { with_bias_ = false; }

    ASC_INLINE void SetOrgShape(int orgM, int orgN, int orgK) { SetOrgShape(orgM, orgN, orgK, orgK); }
    // What chooses or computes a number that is kept or returned is counted.
    inline void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0) {
        whole_m_ = orgM, whole_n_ = orgN, whole_ka_ = orgKa, whole_kb_ = orgKb, pitch_c_ = orgKc ? orgKc : orgN;
    }
    ASC_INLINE void SetSingleShape(int singleM, int singleN, int singleK) {
        m_ = singleM, n_ = singleN, k_ = singleK, step_ = -1;
    }
    inline void SetTail(int tailM = -1, int tailN = -1, int tailK = -1) {
        SetSingleShape(tailM < 0 ? m_ : tailM, tailN < 0 ? n_ : tailN, tailK < 0 ? k_ : tailK);
    }
    ASC_INLINE void SetHF32(bool, int32_t = 0) {}
    ASC_INLINE void SetWorkspace(const GlobalTensor<CT> &) {}
    ASC_INLINE void SetLocalWorkspace(const LocalTensor<uint8_t> &) {}
    ASC_INLINE void SetSubBlockIdx(uint8_t) {}

    template <bool sync = true>
    ASC_INLINE void IterateAll(const GlobalTensor<CT> &c, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                               bool waitIterateAll = false, bool fakeMsg = false, asc::At at = ASC_HERE) {
        (void)waitIterateAll, (void)fakeMsg;
        asc_multiply(0, 0, m_, n_, c.asc_where(), asc_pitch(enSequentialWrite, m_, n_), enAtomic, sync, at);
    }
    template <bool sync = true> ASC_INLINE void IterateAll(const LocalTensor<CT> &c, uint8_t enAtomic = 0,
                                                           asc::At at = ASC_HERE) {
        asc_multiply(0, 0, m_, n_, asc_scratch(3), asc_pitch(true, m_, n_), enAtomic, true, at);
        asc_fetch(c, m_, n_, at);
    }
    ASC_INLINE void WaitIterateAll(asc::At at = ASC_HERE) { asc_barrier(ASC_ALL, at.line); }

    // Iterates over the blocks of baseM x baseN, down first unless the tiling says otherwise.
    template <bool sync = true> inline bool Iterate(bool enPartialSum = false, asc::At at = ASC_HERE) {
        if (enPartialSum) asc_misuse(asc_text_of("the simulator's Matmul starts every product from 0"), at.line);
        return ++step_ < rows() * columns();
    }
    template <bool sync = true> ASC_INLINE void GetTensorC(const GlobalTensor<CT> &c, uint8_t enAtomic = 0,
                                                           bool enSequentialWrite = false, asc::At at = ASC_HERE) {
        const Block block = asc_current();
        const uint32_t step = asc_pitch(enSequentialWrite, block.m, block.n);
        const uint64_t place = enSequentialWrite ? 0
                               : c_fractals      ? uint64_t{block.n0} * step + block.m0 * 16ull
                                                 : uint64_t{block.m0} * step + block.n0;
        asc_multiply(block.m0, block.n0, block.m, block.n, c.asc_where() + place * sizeof(CT), step, enAtomic, sync,
                     at);
    }
    template <bool sync = true> ASC_INLINE void GetTensorC(const LocalTensor<CT> &c, uint8_t enAtomic = 0,
                                                           bool enSequentialWrite = false, asc::At at = ASC_HERE) {
        (void)enSequentialWrite;
        const Block block = asc_current();
        asc_multiply(block.m0, block.n0, block.m, block.n, asc_scratch(3), asc_pitch(true, block.m, block.n), enAtomic,
                     true, at);
        asc_fetch(c, block.m, block.n, at);
    }
    ASC_INLINE void End() { step_ = -1; }

    // Adjacent matrices.
    ASC_INLINE void IterateBatch(const GlobalTensor<CT> &c, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                                 uint32_t matrixStrideA = 0, uint32_t matrixStrideB = 0, uint32_t matrixStrideC = 0,
                                 asc::At at = ASC_HERE) {
        static_assert(!a_fractals && !b_fractals && !c_fractals, "the simulator's IterateBatch knows CubeFormat ND");
        (void)enSequentialWrite;
        if (matrixStrideA || matrixStrideB || matrixStrideC)
            asc_misuse(asc_text_of("the simulator's IterateBatch knows adjacent matrices"), at.line);
        const uint32_t batch = batchA > batchB ? batchA : batchB;
        for (uint32_t i = 0; i < batch; ++i) {
            asc_matrix a = a_, b = b_;
            a.address += (batchA > 1 ? i : 0) * uint64_t{whole_m_} * whole_ka_ * sizeof(AT);
            b.address += (batchB > 1 ? i : 0) * uint64_t{whole_kb_} * whole_n_ * sizeof(BT);
            asc_send(a, b, bias_, m_, n_, c.asc_where() + i * uint64_t{whole_m_} * pitch_c_ * sizeof(CT), pitch_c_, 0,
                     true, at);
        }
    }

private:
    struct Block { uint32_t m0, n0, m, n; };
    static constexpr uint64_t kSlot = 512 << 10;

    static ASC_INLINE constexpr uint32_t asc_whole_fractals(uint32_t rows) { return (rows + 15) / 16 * 16; }
    // The distance from one row of C to the next, or with fractals the rows of a column of fractals.
    ASC_INLINE uint32_t asc_pitch(bool alone, uint32_t m, uint32_t n) const {
        if (c_fractals) return asc_whole_fractals(alone ? m : whole_m_);
        return alone ? n : pitch_c_;
    }
    template <class T> ASC_INLINE void asc_take(asc_matrix &matrix, const GlobalTensor<T> &tensor, bool transposed,
                                                bool fractals) {
        matrix = {tensor.asc_where(), asc::dtype<T>, transposed, fractals};
        step_ = -1;
    }
    // This core's part of the framework's workspace: A, B, bias and C.
    ASC_INLINE asc_global asc_scratch(uint32_t slot) const {
        return reinterpret_cast<asc_global>(GetSysWorkSpacePtr()) + (asc_block_index() * 4ull + slot) * kSlot;
    }
    template <class T> ASC_INLINE T *asc_spill(uint32_t slot, const LocalTensor<T> &tensor, asc::At at) {
        asc_copy_out(asc_scratch(slot), tensor.asc_where(), asc_detail::whole(tensor.GetLength()), asc::dtype<T>, 1,
                     at.line);
        asc_barrier(ASC_ALL, at.line);
        return reinterpret_cast<T *>(asc_scratch(slot));
    }
    ASC_INLINE void asc_fetch(const LocalTensor<CT> &c, uint32_t m, uint32_t n, asc::At at) {
        asc_barrier(ASC_ALL, at.line);
        const uint64_t elements =
            c_fractals ? uint64_t{asc_whole_fractals(m)} * asc_whole_fractals(n) : uint64_t{m} * n;
        asc_copy_in(c.asc_where(), asc_scratch(3), asc_detail::whole(elements * sizeof(CT)), asc::dtype<CT>, 1, 0, 0, 0,
                    0, at.line);
        asc_barrier(ASC_ALL, at.line);
    }
    inline int32_t rows() const { return static_cast<int32_t>((m_ + tiling_.baseM - 1) / tiling_.baseM); }
    inline int32_t columns() const { return static_cast<int32_t>((n_ + tiling_.baseN - 1) / tiling_.baseN); }
    ASC_INLINE Block asc_current() const {
        const bool across = tiling_.iterateOrder == 1;
        const uint32_t row = static_cast<uint32_t>(across ? step_ / columns() : step_ % rows());
        const uint32_t column = static_cast<uint32_t>(across ? step_ % columns() : step_ / rows());
        const uint32_t m0 = row * tiling_.baseM, n0 = column * tiling_.baseN;
        return {m0, n0, static_cast<uint32_t>(asc_least(tiling_.baseM, m_ - m0)),
                static_cast<uint32_t>(asc_least(tiling_.baseN, n_ - n0))};
    }
    ASC_INLINE void asc_multiply(uint32_t m0, uint32_t n0, uint32_t m, uint32_t n, asc_global to, uint32_t pitch,
                                 uint8_t atomic, bool sync, asc::At at) {
        asc_matrix a = a_, b = b_, bias = bias_;
        const bool inside = (a.fractals && a.transposed && m0 % (32 / sizeof(AT))) ||
                            (b.fractals && !b.transposed && n0 % (32 / sizeof(BT))) || (c_fractals && n0 % 16);
        if (inside)
            asc_misuse(asc_text_of("in NZ a block begins on a whole fractal: choose baseM and baseN by its columns"),
                       at.line);
        a.address += a.transposed ? asc_across<AT>(a, m0, asc_lead_a(a)) : asc_down<AT>(a, m0, asc_lead_a(a));
        b.address += b.transposed ? asc_down<BT>(b, n0, asc_lead_b(b)) : asc_across<BT>(b, n0, asc_lead_b(b));
        bias.address += n0 * sizeof(BiasT);
        asc_send(a, b, bias, m, n, to, pitch, atomic, sync, at);
    }
    ASC_INLINE uint32_t asc_lead_a(const asc_matrix &a) const {
        if (a.fractals) return asc_whole_fractals(a.transposed ? whole_ka_ : whole_m_);
        return a.transposed ? whole_m_ : whole_ka_;
    }
    ASC_INLINE uint32_t asc_lead_b(const asc_matrix &b) const {
        if (b.fractals) return asc_whole_fractals(b.transposed ? whole_n_ : whole_kb_);
        return b.transposed ? whole_kb_ : whole_n_;
    }
    // Bytes from the start of a matrix to a row, or to a column.
    template <class T> static ASC_INLINE uint64_t asc_down(const asc_matrix &matrix, uint32_t row, uint32_t lead) {
        return matrix.fractals ? row * 32ull : uint64_t{row} * lead * sizeof(T);
    }
    template <class T> static ASC_INLINE uint64_t asc_across(const asc_matrix &matrix, uint32_t column, uint32_t lead) {
        return (matrix.fractals ? uint64_t{column} * lead : column) * sizeof(T);
    }
    ASC_INLINE void asc_send(const asc_matrix &a, const asc_matrix &b, const asc_matrix &bias, uint32_t m, uint32_t n,
                             asc_global to, uint32_t pitch, uint8_t atomic, bool sync, asc::At at) {
        if (!a_.address || !b_.address)
            asc_misuse(asc_text_of("Matmul needs REGIST_MATMUL_OBJ, SetTensorA and SetTensorB before it computes"),
                       at.line);
        const asc_matmul_shape shape{m,
                                     n,
                                     k_,
                                     asc_lead_a(a),
                                     asc_lead_b(b),
                                     pitch,
                                     static_cast<uint32_t>(tiling_.baseM),
                                     static_cast<uint32_t>(tiling_.baseN),
                                     static_cast<uint32_t>(tiling_.baseK),
                                     static_cast<uint32_t>(tiling_.depthA1),
                                     static_cast<uint32_t>(tiling_.depthB1),
                                     1};
        asc_matmul(a, b, {to, asc::dtype<CT>, 0, c_fractals}, bias, shape,
                   (with_bias_ ? 1u : 0u) | (atomic ? 2u : 0u) | (sync ? 0u : 4u), at.line);
    }

    TCubeTiling tiling_{};
    asc_matrix a_{}, b_{}, bias_{};
    bool with_bias_ = false;
    uint32_t whole_m_ = 0, whole_n_ = 0, whole_ka_ = 0, whole_kb_ = 0, pitch_c_ = 0, m_ = 0, n_ = 0, k_ = 0;
    int32_t step_ = -1;
};

template <class A, class B, class C, class Bias = C, const auto &config = CFG_NORM,
          class Callbacks = MatmulCallBackFunc<>>
using MatmulImpl = Matmul<A, B, C, Bias, config, Callbacks>;

namespace macro_detail {
ASC_INLINE void regist_matmul(TPipe *, GM_ADDR) {}
template <class A, class B, class C, class Bias, const auto &config, class Callbacks, class... Rest>
ASC_INLINE void regist_matmul(TPipe *pipe, GM_ADDR workspace, Matmul<A, B, C, Bias, config, Callbacks> &object,
                              const TCubeTiling *tiling, Rest &&...rest) {
    object.Init(tiling, pipe);
    macro_detail::regist_matmul(pipe, workspace, rest...);
}
}  // namespace macro_detail

}  // namespace AscendC

namespace matmul = AscendC;

#define REGIST_MATMUL_OBJ(pipe, workspace, ...) AscendC::macro_detail::regist_matmul(pipe, workspace, __VA_ARGS__)

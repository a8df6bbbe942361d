#include <algorithm>
#include <cstdint>
#include "kernel_operator.h"
#include "kernel_gym.h"

namespace kernels {
namespace detail {

enum class Policy : uint8_t { Even, Rest };
constexpr uint32_t kTiles[] = {1024, 2048, 4096};

template <typename T>
__aicore__ inline constexpr T CeilDiv(T a, T b) { return (a + b - 1) / b; }

template <int N>
struct Pick {
    static constexpr uint32_t value = kTiles[N] > 2048 ? kTiles[N] : Pick<N + 1>::value;
};
template <>
struct Pick<2> {
    static constexpr uint32_t value = kTiles[2];
};

struct Range {
    uint32_t begin, end;
    __aicore__ inline uint32_t Size() const { return end > begin ? end - begin : 0; }
    __aicore__ inline Range Part(uint32_t index, uint32_t size) const
    {
        return {std::min(begin + index * size, end), std::min(begin + (index + 1) * size, end)};
    }
};

}  // namespace detail

using detail::CeilDiv;
using detail::Range;

// One tile in, one tile out.
template <typename T, uint32_t kTile>
class Unary {
public:
    __aicore__ inline Unary(GM_ADDR x, GM_ADDR y, uint32_t total)
    {
        xGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(x), total);
        yGm_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(y), total);
        pipe_.InitBuffer(in_, 2, kTile * sizeof(T));
        pipe_.InitBuffer(out_, 2, kTile * sizeof(T));
    }

    template <typename Function>
    __aicore__ inline void Over(const Range &mine, Function &&function)
    {
        const uint32_t tiles = CeilDiv(mine.Size(), kTile);
        for (uint32_t i = 0; i < tiles; ++i) {
            const Range tile = mine.Part(i, kTile);
            Load(tile);
            Apply(tile, function);
            Store(tile);
        }
    }

private:
    __aicore__ inline AscendC::DataCopyExtParams Copy(const Range &tile)
    {
        return {1, static_cast<uint32_t>(tile.Size() * sizeof(T)), 0, 0, 0};
    }
    __aicore__ inline void Load(const Range &tile)
    {
        auto x = in_.template AllocTensor<T>();
        AscendC::DataCopyPad(x, xGm_[tile.begin], Copy(tile), AscendC::DataCopyPadExtParams<T>{false, 0, 0, 0});
        in_.EnQue(x);
    }
    template <typename Function>
    __aicore__ inline void Apply(const Range &tile, Function &&function)
    {
        auto x = in_.template DeQue<T>();
        auto y = out_.template AllocTensor<T>();
        function(y, x, static_cast<int32_t>(tile.Size()));
        out_.EnQue(y);
        in_.FreeTensor(x);
    }
    __aicore__ inline void Store(const Range &tile)
    {
        auto y = out_.template DeQue<T>();
        AscendC::DataCopyPad(yGm_[tile.begin], y, Copy(tile));
        out_.FreeTensor(y);
    }

    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out_;
    AscendC::GlobalTensor<T> xGm_, yGm_;
};

}  // namespace kernels

struct Tiling {
    uint32_t total;
    uint32_t perCore;
    kernels::detail::Policy policy;
};

extern "C" __global__ __aicore__ void relu(GM_ADDR x, GM_ADDR y, Tiling tiling)
{
    using Op = kernels::Unary<float, kernels::detail::Pick<0>::value>;
    Op op(x, y, tiling.total);
    const kernels::Range all{0, tiling.total};
    op.Over(all.Part(AscendC::GetBlockIdx(), tiling.perCore),
            [](const AscendC::LocalTensor<float> &to, const AscendC::LocalTensor<float> &from, int32_t n) {
                AscendC::Maxs(to, from, 0.0f, n);
            });
}

namespace {

int64_t Elements(const KernelTensor &tensor)
{
    int64_t product = 1;
    for (int i = 0; i < tensor.ndim; ++i) product *= tensor.shape[i];
    return product;
}

}  // namespace

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    const auto total = static_cast<uint32_t>(Elements(args->inputs[0]));
    const uint32_t cores = std::max(1u, std::min(40u, total / 64));
    Tiling tiling{total, kernels::CeilDiv(kernels::CeilDiv(total, cores), 64u) * 64u, kernels::detail::Policy::Even};
    if (total % cores != 0) {
        tiling.policy = kernels::detail::Policy::Rest;
    }
    const uint32_t blocks = kernels::CeilDiv(total, tiling.perCore);
    relu<<<blocks, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->outputs[0].ptr, tiling);
    return 0;
}

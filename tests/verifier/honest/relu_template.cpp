#include "kernel_operator.h"
#include "kernel_gym.h"
#include <cstdint>

using namespace AscendC;

#ifndef TILE_LENGTH
#define TILE_LENGTH 2048
#endif
#define BUFFER_NUM 2
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define GM_OF(T, p) reinterpret_cast<__gm__ T *>(p)

namespace kernels {
namespace detail {
static constexpr uint32_t kCores = 48;
constexpr int32_t kAlign = 32 / sizeof(float);
enum class Mode : uint8_t { Plain, Padded };
template <typename T> struct Traits { static constexpr uint32_t size = sizeof(T); };
} // namespace detail

struct Tiling { uint32_t total, perCore; };

template <typename T>
__aicore__ inline T Minimum(T a, T b) { return a < b ? a : b; }

template <typename T, int32_t Depth = 1>
class Relu_ {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, Tiling t)
    {
        const uint32_t start = GetBlockIdx() * t.perCore;
        count_ = start < t.total ? Minimum(t.perCore, t.total - start) : 0;
        source_.SetGlobalBuffer(GM_OF(T, x) + start);
        target_.SetGlobalBuffer(GM_OF(T, y) + start);
        pipe_.InitBuffer(in_, BUFFER_NUM, TILE_LENGTH * sizeof(T));
        pipe_.InitBuffer(out_, BUFFER_NUM, TILE_LENGTH * sizeof(T));
    }
    __aicore__ inline void Process()
    {
        const uint32_t tiles = CEIL_DIV(count_, TILE_LENGTH);
        for (uint32_t i = 0; i < tiles; i++) {
            const uint32_t n = Minimum<uint32_t>(TILE_LENGTH, count_ - i * TILE_LENGTH);
            Step<detail::Mode::Padded>(i * TILE_LENGTH, n);
        }
    }

private:
    template <detail::Mode mode>
    __aicore__ inline void Step(uint32_t offset, uint32_t n)
    {
        static_assert(detail::Traits<T>::size == 4, "float only");
        auto x = in_.template AllocTensor<T>();
        DataCopyPad(x, source_[offset], DataCopyExtParams{1, uint32_t(n * sizeof(T)), 0, 0, 0},
                    DataCopyPadExtParams<T>{true, 0, 0, T(0)});
        in_.EnQue(x);
        x = in_.template DeQue<T>();
        auto y = out_.template AllocTensor<T>();
        Maxs(y, x, T(0), static_cast<int32_t>(n));
        out_.EnQue(y);
        in_.FreeTensor(x);
        y = out_.template DeQue<T>();
        DataCopyPad(target_[offset], y, DataCopyExtParams{1, uint32_t(n * sizeof(T)), 0, 0, 0});
        out_.FreeTensor(y);
    }
    TPipe pipe_;
    TQue<QuePosition::VECIN, Depth> in_;
    TQue<QuePosition::VECOUT, Depth> out_;
    GlobalTensor<T> source_, target_;
    uint32_t count_ {0};
};
} // namespace kernels

extern "C" __global__ __aicore__ void relu_entry(GM_ADDR x, GM_ADDR y, kernels::Tiling t)
{
    kernels::Relu_<float> op;
    op.Init(x, y, t);
    op.Process();
}

static int64_t Numel(const KernelTensor &tensor)
{
    int64_t n = 1;
    for (int32_t d = 0; d < tensor.ndim; d++) n *= tensor.shape[d];
    return n;
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    if (args->num_inputs != 1 || args->inputs[0].dtype != KERNEL_FLOAT32) return 1;
    kernels::Tiling t {};
    t.total = (uint32_t)Numel(args->inputs[0]);
    t.perCore = CEIL_DIV(CEIL_DIV(t.total, kernels::detail::kCores), 64u) * 64u;
    relu_entry<<<CEIL_DIV(t.total, t.perCore), nullptr, stream>>>(
        reinterpret_cast<GM_ADDR>(args->inputs[0].ptr),
        reinterpret_cast<GM_ADDR>(args->outputs[0].ptr),
        t);
    return 0;
}

// z = x + y of half, in the steps of a tuning sequence: a scalar loop, vector instructions, many cores, large tiles,
// two buffers, inputs that bypass L2, sources in different bank groups.
// ints: cores, tile (elements), buffers, vector (0: scalar loop), bypass, apart (bytes between x and y in UB)
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

struct AddTiling {
    uint64_t total;
    uint32_t tile, buffers, vector, bypass, apart;
};

class Adder {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const AddTiling &tiling) {
        tiling_ = tiling;
        const uint64_t share = (tiling.total / GetBlockNum() + 15) / 16 * 16;
        begin_ = share * GetBlockIdx();
        size_ = begin_ >= tiling.total ? 0 : (tiling.total - begin_ < share ? tiling.total - begin_ : share);
        x_.SetGlobalBuffer((__gm__ half *)x + begin_, size_);
        y_.SetGlobalBuffer((__gm__ half *)y + begin_, size_);
        z_.SetGlobalBuffer((__gm__ half *)z + begin_, size_);
        if (tiling.bypass) {
            x_.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
            y_.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
        }
        const uint32_t bytes = tiling.tile * sizeof(half);
        pipe_.InitBuffer(in_x_, tiling.buffers, bytes);
        if (tiling.apart) pipe_.InitBuffer(gap_, tiling.apart);
        pipe_.InitBuffer(in_y_, tiling.buffers, bytes);
        pipe_.InitBuffer(out_, tiling.buffers, bytes);
    }
    __aicore__ inline void Process() {
        for (uint64_t at = 0; at < size_; at += tiling_.tile) {
            const uint32_t count = size_ - at < tiling_.tile ? size_ - at : tiling_.tile;
            CopyIn(at, count);
            Compute(count);
            CopyOut(at, count);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t at, uint32_t count) {
        LocalTensor<half> x = in_x_.AllocTensor<half>();
        LocalTensor<half> y = in_y_.AllocTensor<half>();
        DataCopy(x, x_[at], count);
        DataCopy(y, y_[at], count);
        in_x_.EnQue(x);
        in_y_.EnQue(y);
    }
    __aicore__ inline void Compute(uint32_t count) {
        LocalTensor<half> x = in_x_.DeQue<half>();
        LocalTensor<half> y = in_y_.DeQue<half>();
        LocalTensor<half> z = out_.AllocTensor<half>();
        if (tiling_.vector) {
            Add(z, x, y, count);
        } else {
            for (uint32_t i = 0; i < count; ++i) z.SetValue(i, (half)((float)x.GetValue(i) + (float)y.GetValue(i)));
        }
        out_.EnQue(z);
        in_x_.FreeTensor(x);
        in_y_.FreeTensor(y);
    }
    __aicore__ inline void CopyOut(uint64_t at, uint32_t count) {
        LocalTensor<half> z = out_.DeQue<half>();
        DataCopy(z_[at], z, count);
        out_.FreeTensor(z);
    }

    TPipe pipe_;
    TQue<QuePosition::VECIN, 2> in_x_, in_y_;
    TQue<QuePosition::VECOUT, 2> out_;
    TBuf<TPosition::VECCALC> gap_;
    GlobalTensor<half> x_, y_, z_;
    AddTiling tiling_;
    uint64_t begin_, size_;
};

extern "C" __global__ __aicore__ void add_kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z, AddTiling tiling) {
    Adder op;
    op.Init(x, y, z, tiling);
    op.Process();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 6 || a->num_inputs != 2) return 1;
    const KernelTensor &x = a->inputs[0];
    AddTiling tiling{(uint64_t)x.shape[0] * x.shape[1], (uint32_t)a->ints[1], (uint32_t)a->ints[2],
                     (uint32_t)a->ints[3], (uint32_t)a->ints[4], (uint32_t)a->ints[5]};
    add_kernel<<<(uint32_t)a->ints[0], nullptr, stream>>>((GM_ADDR)x.ptr, (GM_ADDR)a->inputs[1].ptr,
                                                           (GM_ADDR)a->outputs[0].ptr, tiling);
    return 0;
}

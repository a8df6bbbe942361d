// Reads a matrix of half into UB, tile by tile, to measure the cost of copies by shape.
// ints: cores, tile rows, tile columns, whole (1: one instruction a tile, 0: one a row),
//       shared (0: each core its rows, 1: every core all rows in the same order, 2: each starting elsewhere)
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

struct CopyTiling {
    uint32_t rows, columns, tile_rows, tile_columns, whole, shared;
};

class CopyIn {
public:
    __aicore__ inline void Init(GM_ADDR x, const CopyTiling &tiling) {
        t_ = tiling;
        x_.SetGlobalBuffer((__gm__ half *)x, (uint64_t)tiling.rows * tiling.columns);
        pipe_.InitBuffer(buffer_, t_.tile_rows * t_.tile_columns * sizeof(half));
    }
    __aicore__ inline void Process() {
        const uint32_t rows = t_.shared ? t_.rows : t_.rows / GetBlockNum();
        const uint32_t first = t_.shared ? 0 : rows * GetBlockIdx();
        const uint32_t across = (t_.columns + t_.tile_columns - 1) / t_.tile_columns, tiles = rows / t_.tile_rows * across;
        const uint32_t start = t_.shared == 2 ? tiles / GetBlockNum() * GetBlockIdx() : 0;
        for (uint32_t i = 0; i < tiles; ++i) {
            const uint32_t tile = (start + i) % tiles;
            Tile(first + tile / across * t_.tile_rows, tile % across * t_.tile_columns);
        }
    }

private:
    __aicore__ inline void Tile(uint32_t row, uint32_t column) {
        LocalTensor<half> local = buffer_.Get<half>();
        const uint32_t left = t_.columns - column, width = left < t_.tile_columns ? left : t_.tile_columns;
        const uint32_t bytes = width * sizeof(half);
        const uint64_t at = (uint64_t)row * t_.columns + column;
        DataCopyPadExtParams<half> pad{false, 0, 0, (half)0};
        if (t_.whole) {
            const uint32_t gap = (t_.columns - width) * sizeof(half);
            DataCopyPad(local, x_[at], DataCopyExtParams{(uint16_t)t_.tile_rows, bytes, gap, 0, 0}, pad);
            return;
        }
        for (uint32_t i = 0; i < t_.tile_rows; ++i)
            DataCopyPad(local[i * t_.tile_columns], x_[at + (uint64_t)i * t_.columns], DataCopyExtParams{1, bytes, 0, 0, 0}, pad);
    }

    TPipe pipe_;
    TBuf<TPosition::VECCALC> buffer_;
    GlobalTensor<half> x_;
    CopyTiling t_;
};

extern "C" __global__ __aicore__ void copy_in_kernel(GM_ADDR x, CopyTiling tiling) {
    CopyIn op;
    op.Init(x, tiling);
    op.Process();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 5 || a->num_inputs != 1) return 1;
    const KernelTensor &x = a->inputs[0];
    CopyTiling tiling{(uint32_t)x.shape[0], (uint32_t)x.shape[1], (uint32_t)a->ints[1],
                      (uint32_t)a->ints[2], (uint32_t)a->ints[3], (uint32_t)a->ints[4]};
    copy_in_kernel<<<(uint32_t)a->ints[0], nullptr, stream>>>((GM_ADDR)x.ptr, tiling);
    return 0;
}

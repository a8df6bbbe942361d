// Reads a matrix of half into L1 on the cube cores and converts each tile to fractals on the way.
// ints: cores, tile rows, tile columns
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;

struct NzTiling {
    uint32_t rows, columns, tile_rows, tile_columns;
};

extern "C" __global__ __cube__ void copy_nz_kernel(GM_ADDR x, NzTiling t) {
    TPipe pipe;
    TBuf<TPosition::A1> buffer;
    pipe.InitBuffer(buffer, t.tile_rows * t.tile_columns * sizeof(half));
    GlobalTensor<half> global;
    global.SetGlobalBuffer((__gm__ half *)x, (uint64_t)t.rows * t.columns);
    LocalTensor<half> local = buffer.Get<half>();
    const uint32_t rows = t.rows / GetBlockNum(), first = rows * GetBlockIdx();
    for (uint32_t row = first; row < first + rows; row += t.tile_rows) {
        for (uint32_t column = 0; column < t.columns; column += t.tile_columns) {
            const uint32_t left = t.columns - column, width = left < t.tile_columns ? left : t.tile_columns;
            Nd2NzParams params(1, t.tile_rows, width, 0, t.columns, t.tile_rows, 1, 0);
            DataCopy(local, global[(uint64_t)row * t.columns + column], params);
        }
    }
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    if (a->num_ints != 3 || a->num_inputs != 1) return 1;
    const KernelTensor &x = a->inputs[0];
    NzTiling tiling{(uint32_t)x.shape[0], (uint32_t)x.shape[1], (uint32_t)a->ints[1], (uint32_t)a->ints[2]};
    copy_nz_kernel<<<(uint32_t)a->ints[0], nullptr, stream>>>((GM_ADDR)x.ptr, tiling);
    return 0;
}

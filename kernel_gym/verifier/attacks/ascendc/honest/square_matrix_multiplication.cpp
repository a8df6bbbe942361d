// task: level1/square_matrix_multiplication
// cause: honest
// expect: feasible
// about: a matrix product with the library's Matmul, blocks of 128 by 128
#include "kernel_operator.h"
#include "kernel_gym.h"
#include "lib/matmul_intf.h"

struct Product {
    TCubeTiling cube;
    uint32_t side, depth, blocks, share;
};

extern "C" __global__ __aicore__ void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, Product p)
{
    AscendC::TPipe pipe;
    using Matrix = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
    AscendC::Matmul<Matrix, Matrix, Matrix> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &p.cube);
    AscendC::GlobalTensor<float> left, right, product;
    left.SetGlobalBuffer((__gm__ float *)a);
    right.SetGlobalBuffer((__gm__ float *)b);
    product.SetGlobalBuffer((__gm__ float *)c);
    uint32_t first = AscendC::GetBlockIdx() * p.share;
    for (uint32_t block = first; block < first + p.share && block < p.blocks * p.blocks; ++block) {
        uint32_t row = block / p.blocks * 128, column = block % p.blocks * 128;
        uint32_t height = p.side - row < 128 ? p.side - row : 128;
        uint32_t width = p.side - column < 128 ? p.side - column : 128;
        mm.SetTensorA(left[row * p.side], false);
        mm.SetTensorB(right[column], false);
        mm.SetTail(height, width, p.depth);
        mm.IterateAll(product[row * p.side + column]);
        mm.End();
    }
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    Product p;
    p.side = static_cast<uint32_t>(args->inputs[0].shape[0]);
    p.depth = p.side;  // @depth
    p.blocks = (p.side + 127) / 128;
    uint32_t all = p.blocks * p.blocks, pairs = (all + 1) / 2 < 24 ? (all + 1) / 2 : 24;
    p.share = (all + 2 * pairs - 1) / (2 * pairs);
    uint32_t base = p.side < 128 ? p.side : 128;
    p.cube.usedCoreNum = 2 * pairs;
    p.cube.M = p.cube.N = p.cube.Ka = p.cube.Kb = p.side;
    p.cube.baseM = p.cube.baseN = p.cube.singleCoreM = p.cube.singleCoreN = base;
    p.cube.baseK = p.side < 64 ? p.side : 64;
    p.cube.singleCoreK = p.side;
    p.cube.depthA1 = p.cube.depthB1 = 4;  // @buffers
    multiply<<<pairs, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->inputs[1].ptr,
                                         (GM_ADDR)args->outputs[0].ptr, p);
    return 0;
}
// @end

// task: level1/square_matrix_multiplication
// cause: honest
// expect: feasible
// about: a matrix product of vector cores in pairs: one of a pair multiplies by a third of the columns, the other by the rest
#include "kernel_operator.h"
#include "kernel_gym.h"
#include "lib/matmul_intf.h"

struct Product {
    TCubeTiling cube;
    uint32_t side, parts;
};

extern "C" __global__ __aicore__ void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR ws, Product p)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    AscendC::TPipe pipe;
    using Matrix = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
    AscendC::Matmul<Matrix, Matrix, Matrix> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &p.cube);
    AscendC::GlobalTensor<float> left, right, product, room;
    left.SetGlobalBuffer((__gm__ float *)a);
    right.SetGlobalBuffer((__gm__ float *)b);
    product.SetGlobalBuffer((__gm__ float *)c);
    room.SetGlobalBuffer((__gm__ float *)ws);
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 65536);
    const uint32_t lane = AscendC::GetSubBlockIdx(), pair = AscendC::GetBlockIdx() / 2;
    const uint32_t row = pair / p.parts * 128, height = p.side - row < 128 ? p.side - row : 128;
    const uint32_t share = (p.side / p.parts + 15) / 16 * 16, first = pair % p.parts * share;
    const uint32_t wide = p.side - first < share ? p.side - first : share, third = wide / 48 * 16;
    const uint32_t column = lane == 0 ? first : first + third, width = lane == 0 ? third : wide - third;
    if (width > 0) {
        mm.SetTensorA(left[row * p.side], false);
        mm.SetTensorB(right[column], false);
        mm.SetTail(height, width, p.side);
        mm.IterateAll<false>(product[row * p.side + column]);
        // @beside
        mm.WaitIterateAll();
        mm.End();
    }
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    Product p;
    p.side = static_cast<uint32_t>(args->inputs[0].shape[0]);
    p.parts = p.side < 1024 ? 1 : 3;
    const uint32_t pairs = (p.side + 127) / 128 * p.parts;
    p.cube.usedCoreNum = 2 * pairs;
    p.cube.M = p.cube.N = p.cube.Ka = p.cube.Kb = p.side;
    p.cube.baseM = p.cube.singleCoreM = p.side < 128 ? p.side : 128;
    p.cube.baseN = p.cube.singleCoreN = p.side < 256 ? p.side : 256;
    p.cube.baseK = p.side < 64 ? p.side : 64;
    p.cube.singleCoreK = p.side;
    p.cube.depthA1 = p.cube.depthB1 = 8;
    multiply<<<pairs, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->inputs[1].ptr,
                                         (GM_ADDR)args->outputs[0].ptr, (GM_ADDR)args->workspace, p);
    return 0;
}

// C = A B of half with the library's Matmul: one part of C for each cube core.
// ints: cores, cores along M, base m, base n, base k, depth of A and of B in L1 (1: one buffer)
#include "kernel_gym.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;

__aicore__ inline uint32_t Up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }

extern "C" __global__ __cube__ void matmul_kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling, uint32_t down) {
    TPipe pipe;
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half>, MatmulType<TPosition::GM, CubeFormat::ND, half>,
           MatmulType<TPosition::GM, CubeFormat::ND, half>> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    const uint32_t m = GetBlockIdx() % down * tiling.singleCoreM, n = GetBlockIdx() / down * tiling.singleCoreN;
    if (m >= tiling.M || n >= tiling.N) return;
    GlobalTensor<half> from_a, from_b, to;
    from_a.SetGlobalBuffer((__gm__ half *)a + (uint64_t)m * tiling.Ka);
    from_b.SetGlobalBuffer((__gm__ half *)b + n);
    to.SetGlobalBuffer((__gm__ half *)c + (uint64_t)m * tiling.N + n);
    mm.SetTensorA(from_a);
    mm.SetTensorB(from_b);
    mm.SetTail(tiling.M - m < tiling.singleCoreM ? tiling.M - m : tiling.singleCoreM,
               tiling.N - n < tiling.singleCoreN ? tiling.N - n : tiling.singleCoreN);
    mm.IterateAll(to);
    mm.End();
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    if (args->num_ints != 7 || args->num_inputs != 2) return 1;
    const KernelTensor &a = args->inputs[0], &b = args->inputs[1];
    const uint32_t cores = (uint32_t)args->ints[0], down = (uint32_t)args->ints[1];
    TCubeTiling t{};
    t.usedCoreNum = cores;
    t.M = a.shape[0], t.N = b.shape[1], t.Ka = t.Kb = a.shape[1];
    t.baseM = args->ints[2], t.baseN = args->ints[3], t.baseK = args->ints[4];
    t.singleCoreM = Up(Up(t.M, down), t.baseM) * t.baseM;
    t.singleCoreN = Up(Up(t.N, cores / down), t.baseN) * t.baseN;
    t.singleCoreK = t.Ka;
    t.depthA1 = args->ints[5], t.depthB1 = args->ints[6];
    matmul_kernel<<<cores, nullptr, stream>>>((GM_ADDR)a.ptr, (GM_ADDR)b.ptr, (GM_ADDR)args->outputs[0].ptr, t, down);
    return 0;
}

// Names of the high-level Matmul that no other kernel of the suite uses: 32 x 32 by 32 x 32.
#include <initializer_list>

#include "kernel_operator.h"
#include "kernel_gym.h"
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
using namespace AscendC;

constexpr MatmulConfig chosen = GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1);
constexpr MatmulConfig special = GetSpecialMDLConfig(), listed = GetMMConfig<MatmulConfigMode::CONFIG_MDL>(),
                       plain = GetMMConfig<CONFIG_NORM>();
static_assert(chosen.doNorm && special.doMultiDataLoad && listed.doMultiDataLoad && plain.doNorm &&
              GetMDLConfig().doMultiDataLoad);
static_assert(CFG_NORM.doNorm && CFG_MDL.doMultiDataLoad && CFG_IBSHARE_NORM.doIBShareNorm && MM_CFG_BB.doNorm &&
              CONFIG_MDL != CONFIG_NORM);
static_assert(MatmulConfigMode::CONFIG_SPECIALMDL != MatmulConfigMode::CONFIG_IBSHARE);
static_assert(BatchMode::NONE != BatchMode::BATCH_LARGE_THAN_L1 &&
              BatchMode::SINGLE_LARGE_THAN_L1 != BatchMode::BATCH_LESS_THAN_L1);

using A = MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NONE>;
using B = MatmulType<TPosition::GM, CubeFormat::ND, float, false, LayoutMode::NORMAL>;
using C = MatmulType<TPosition::GM, CubeFormat::ND_ALIGN, float, false, LayoutMode::BSNGD>;
using D = MatmulType<TPosition::GM, CubeFormat::VECTOR, float, false, LayoutMode::SBNGD>;
static_assert(LayoutMode::BNGS1S2 != LayoutMode::BSNGD && CubeFormat::SCALAR != CubeFormat::VECTOR);

extern "C" __global__ __aicore__ void matmul_names(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR ws, TCubeTiling tiling) {
    SetSysWorkspace(ws);
    TPipe pipe;
    if (GetBlockIdx() != 0) return;
    MatmulImpl<A, B, C, D, CFG_MDL, MatmulCallBackFunc<nullptr, nullptr, nullptr>> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
    GlobalTensor<float> a, b, c;
    a.SetGlobalBuffer((__gm__ float *)x);
    b.SetGlobalBuffer((__gm__ float *)y);
    c.SetGlobalBuffer((__gm__ float *)z);
    TBuf<> tw;
    pipe.InitBuffer(tw, 1024);
    mm.SetHF32(false);
    mm.SetSubBlockIdx(0);
    mm.SetWorkspace(c);
    mm.SetLocalWorkspace(tw.Get<uint8_t>());
    mm.SetOrgShape(32, 32, 32);
    mm.SetSingleShape(32, 32, 32);
    mm.SetTail(32, 32, 32);
    mm.SetTensorA(a);
    mm.SetTensorB(b);
    mm.DisableBias();
    mm.IterateAll<false>(c);
    mm.WaitIterateAll();
    mm.End();
}

extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    matmul_tiling::MatmulApiTiling api(*platform_ascendc::PlatformAscendCManager::GetInstance("Ascend910B2"));
    api.SetDim(1);
    for (auto type :
         {matmul_tiling::DataType::DT_INT8, matmul_tiling::DataType::DT_BF16, matmul_tiling::DataType::DT_INT32,
          matmul_tiling::DataType::DT_BFLOAT16, matmul_tiling::DataType::DT_FLOAT16, matmul_tiling::DataType::DT_FLOAT})
        api.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, type);
    api.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    api.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    api.SetBiasType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    api.SetShape(32, 32, 32);
    api.SetOrgShape(32, 32, 32);
    api.SetSingleShape(32, 32, 32);
    api.SetSingleRange(32, 32, 32);
    api.SetAlignSplit(16, 16, 16);
    api.SetFixSplit(32, 32);
    api.EnableBias(false);
    api.SetBufferSpace(-1, -1, -1);
    TCubeTiling tiling;
    int32_t cores = 0, down = 0, across = 0;
    if (api.GetTiling(tiling) < 0 || api.GetCoreNum(cores, down, across) || cores != 1) return 1;
    matmul_names<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr,
                                         (GM_ADDR)a->outputs[0].ptr, (GM_ADDR)a->workspace, tiling);
    return 0;
}

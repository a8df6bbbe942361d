project_json_src = """
[
    {
        "op": "LinearCustom",
        "language": "cpp",
        "input_desc": [
            {
                "name": "a",
                "param_type": "required",
                "format": [
                    "ND"
                ],
                "type": [
                    "float"
                ]
            },
            {
                "name": "b",
                "param_type": "required",
                "format": [
                    "ND"
                ],
                "type": [
                    "float"
                ]
            }
        ],
        "output_desc": [
            {
                "name": "c",
                "param_type": "required",
                "format": [
                    "ND"
                ],
                "type": [
                    "float"
                ]
            }
        ]
    }
]
"""

host_tiling_src = """
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(LinearCustomTilingData)
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, cube);
TILING_DATA_FIELD_DEF(uint32_t, rows);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(LinearCustom, LinearCustomTilingData)
}  // namespace optiling
"""

host_operator_src = """
#include "linear_custom_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/tiling_api.h"
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context) {
    LinearCustomTilingData tiling;
    using namespace matmul_tiling;
    const gert::StorageShape *a = context->GetInputShape(0), *b = context->GetInputShape(1);
    int32_t M = a->GetOriginShape().GetDim(0), K = a->GetOriginShape().GetDim(1), N = b->GetOriginShape().GetDim(1);
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    MultiCoreMatmulTiling cube(platform);
    cube.SetDim(2);
    cube.SetAType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    cube.SetBType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    cube.SetCType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    cube.SetShape(M, N, K);
    cube.SetOrgShape(M, N, K);
    cube.SetFixSplit(16, 64, -1);
    cube.SetBias(false);
    cube.SetBufferSpace(-1, -1, -1);
    if (cube.GetTiling(tiling.cube) == -1) return ge::GRAPH_FAILED;
    tiling.set_rows(tiling.cube.get_M());
    context->SetBlockDim(1);
    size_t *workspace = context->GetWorkspaceSizes(1);
    workspace[0] = platform.GetLibApiWorkSpaceSize();
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class LinearCustom : public OpDef {
public:
    explicit LinearCustom(const char *name) : OpDef(name) {
        this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(LinearCustom);
}  // namespace ops
"""

kernel_src = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using namespace matmul;

extern "C" __global__ __aicore__ void linear_custom(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace,
                                                    GM_ADDR tiling) {
    GET_TILING_DATA(t, tiling);
    TCubeTiling cube = t.cube;
    TPipe pipe;
    GlobalTensor<float> aGm, bGm, cGm;
    aGm.SetGlobalBuffer((__gm__ float *)a, cube.M * cube.Ka);
    bGm.SetGlobalBuffer((__gm__ float *)b, cube.Kb * cube.N);
    cGm.SetGlobalBuffer((__gm__ float *)c, t.rows * cube.N);
    int32_t across = (cube.N + cube.singleCoreN - 1) / cube.singleCoreN;
    int32_t m = GetBlockIdx() / across * cube.singleCoreM, n = GetBlockIdx() % across * cube.singleCoreN;
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, float>, MatmulType<TPosition::GM, CubeFormat::ND, float>,
           MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &cube);
    if (m >= cube.M || n >= cube.N) return;
    mm.SetTensorA(aGm[m * cube.Ka]);
    mm.SetTensorB(bGm[n]);
    mm.SetTail(cube.M - m < cube.singleCoreM ? cube.M - m : cube.singleCoreM,
               cube.N - n < cube.singleCoreN ? cube.N - n : cube.singleCoreN);
    mm.IterateAll(cGm[m * cube.N + n]);
    mm.End();
}
"""

python_bind_src = """
#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"

at::Tensor linear_npu(const at::Tensor &a, const at::Tensor &b) {
    auto c = at::empty({a.size(0), b.size(1)}, a.options());
    EXEC_NPU_CMD(aclnnLinearCustom, a, b, c);
    return c;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("linear_custom", [](const at::Tensor &a, const at::Tensor &b) { return linear_npu(a, b); });
}
"""

model_src = """
import torch
import torch.nn as nn
import torch_npu
import custom_ops_lib


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 128, bias=False)

    def forward(self, x):
        return custom_ops_lib.linear_custom(x, self.layer.weight.t().contiguous())
"""

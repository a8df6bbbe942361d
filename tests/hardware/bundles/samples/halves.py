project_json_src = """
[
    {
        "op": "HalvesCustom",
        "language": "cpp",
        "input_desc": [
            {
                "name": "x",
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
                "name": "y",
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
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(HalvesCustomTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF(uint32_t, perBlock);
TILING_DATA_FIELD_DEF(uint32_t, tile);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(HalvesCustom, HalvesCustomTilingData)
}  // namespace optiling
"""

host_operator_src = """
#include "halves_custom_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context) {
    HalvesCustomTilingData tiling;
    uint32_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    uint32_t cores = 40, perBlock = ((total + cores - 1) / cores + 7) / 8 * 8;
    context->SetBlockDim(cores);
    tiling.set_total(total);
    tiling.set_perBlock(perBlock);
    tiling.set_tile(2048);

    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    if (platform.GetSocVersion() == platform_ascendc::SocVersion::ASCEND310P) return ge::GRAPH_FAILED;
    context->SetTilingKey(context->GetInputShape(0)->GetStorageShape().GetDim(0) > 32 ? 2 : 1);
    context->GetWorkspaceSizes(1)[0] = perBlock * cores * sizeof(float);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class HalvesCustom : public OpDef {
public:
    explicit HalvesCustom(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(HalvesCustom);
}  // namespace ops
"""

kernel_src = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void halves_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(t, tiling);
    uint32_t begin = GetBlockIdx() * t.perBlock;
    uint32_t count = begin >= t.total ? 0 : (t.total - begin < t.perBlock ? t.total - begin : t.perBlock);
    GlobalTensor<float> xGm, yGm, scratch;
    xGm.SetGlobalBuffer((__gm__ float *)x + begin, count);
    yGm.SetGlobalBuffer((__gm__ float *)y + begin, count);
    scratch.SetGlobalBuffer((__gm__ float *)GetUserWorkspace(workspace) + begin, count);
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> inQueue;
    TQue<QuePosition::VECOUT, 1> outQueue;
    pipe.InitBuffer(inQueue, 1, t.tile * sizeof(float));
    pipe.InitBuffer(outQueue, 1, t.tile * sizeof(float));
    for (uint32_t at = 0; at < count; at += t.tile) {
        uint32_t n = count - at < t.tile ? count - at : t.tile;
        DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
        LocalTensor<float> in = inQueue.AllocTensor<float>();
        DataCopyPad(in, xGm[at], copy, DataCopyPadExtParams<float>{false, 0, 0, 0});
        inQueue.EnQue(in);
        in = inQueue.DeQue<float>();
        LocalTensor<float> out = outQueue.AllocTensor<float>();
        if (TILING_KEY_IS(1)) {
            Muls(out, in, 0.25f, n);
        } else if (TILING_KEY_IS(2)) {
            Muls(out, in, 0.5f, n);
        }
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(scratch[at], out, copy);
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(out, scratch[at], copy, DataCopyPadExtParams<float>{false, 0, 0, 0});
        PipeBarrier<PIPE_ALL>();
        outQueue.EnQue(out);
        inQueue.FreeTensor(in);
        out = outQueue.DeQue<float>();
        DataCopyPad(yGm[at], out, copy);
        outQueue.FreeTensor(out);
    }
}
"""

python_bind_src = """
#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"

namespace {
int64_t rows_of(const at::Tensor &x) { return x.numel() / x.size(-1); }
}

at::Tensor halves_npu(const at::Tensor &x) {
    int64_t rows = rows_of(x);
    at::Tensor y = at::zeros({rows, x.size(1)}, at::TensorOptions().dtype(x.dtype()).device(x.device()));
    if (rows > 0) {
        EXEC_NPU_CMD(aclnnHalvesCustom, x, y);
    }
    return y;
}

TORCH_LIBRARY(myops, m) {
    m.def("halves_custom(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(myops, PrivateUse1, m) {
    m.impl("halves_custom", &halves_npu);
}
"""

model_src = """
import torch
import torch_npu
import custom_ops_lib


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ops.myops.halves_custom(x)
"""

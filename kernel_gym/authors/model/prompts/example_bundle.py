project_json_src = """
[
    {
        "op": "AffineCustom",
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
        ],
        "attr": [
            {
                "name": "scale",
                "param_type": "required",
                "type": "float"
            }
        ]
    }
]
"""

host_tiling_src = """
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AffineCustomTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF(uint32_t, perBlock);
TILING_DATA_FIELD_DEF(uint32_t, tile);
TILING_DATA_FIELD_DEF(float, scale);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(AffineCustom, AffineCustomTilingData)
}  // namespace optiling
"""

host_operator_src = """
#include "affine_custom_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context) {
    AffineCustomTilingData tiling;
    uint32_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    uint32_t cores = 40, perBlock = ((total + cores - 1) / cores + 7) / 8 * 8;
    context->SetBlockDim(cores);
    tiling.set_total(total);
    tiling.set_perBlock(perBlock);
    tiling.set_tile(2048);

    tiling.set_scale(*context->GetAttrs()->GetAttrPointer<float>(0));
    context->GetWorkspaceSizes(1)[0] = 0;
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class AffineCustom : public OpDef {
public:
    explicit AffineCustom(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Attr("scale").AttrType(REQUIRED).Float();
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(AffineCustom);
}  // namespace ops
"""

kernel_src = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void affine_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(t, tiling);
    uint32_t begin = GetBlockIdx() * t.perBlock;
    uint32_t count = begin >= t.total ? 0 : (t.total - begin < t.perBlock ? t.total - begin : t.perBlock);
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float *)x + begin, count);
    yGm.SetGlobalBuffer((__gm__ float *)y + begin, count);
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
        Muls(out, in, t.scale, n);
        Adds(out, out, 1.0f, n);
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

at::Tensor affine_custom_npu(const at::Tensor &x, double scale) {
    at::Tensor y = at::empty_like(x);
    EXEC_NPU_CMD(aclnnAffineCustom, x, scale, y);
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("affine_custom", &affine_custom_npu, "scale * x + 1");
}
"""

model_src = """
import torch
import torch_npu
import custom_ops_lib


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        return custom_ops_lib.affine_custom(x, self.scale)
"""

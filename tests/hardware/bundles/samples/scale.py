project_json_src = """
[
    {
        "op": "ScaleCustom",
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
            },
            {
                "name": "shift",
                "param_type": "required",
                "type": "int"
            },
            {
                "name": "negate",
                "param_type": "required",
                "type": "bool"
            }
        ]
    }
]
"""

host_tiling_src = """
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ScaleCustomTilingData)
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF(uint32_t, perBlock);
TILING_DATA_FIELD_DEF(uint32_t, tile);

TILING_DATA_FIELD_DEF(uint8_t, negate);
TILING_DATA_FIELD_DEF(float, scale);
TILING_DATA_FIELD_DEF(bool, isShifted);
TILING_DATA_FIELD_DEF(int64_t, shift);
TILING_DATA_FIELD_DEF(uint64_t, unused);
TILING_DATA_FIELD_DEF(int32_t, sign);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ScaleCustom, ScaleCustomTilingData)
}  // namespace optiling
"""

host_operator_src = """
#include "scale_custom_tiling.h"
#include "register/op_def_registry.h"

namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext *context) {
    ScaleCustomTilingData tiling;
    uint32_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    uint32_t cores = 40, perBlock = ((total + cores - 1) / cores + 7) / 8 * 8;
    context->SetBlockDim(cores);
    tiling.set_total(total);
    tiling.set_perBlock(perBlock);
    tiling.set_tile(2048);

    const gert::RuntimeAttrs *attrs = context->GetAttrs();
    if (attrs == nullptr || attrs->GetAttrNum() != 3) return ge::GRAPH_FAILED;
    const float *scale = attrs->GetAttrPointer<float>(0);
    const int64_t *shift = attrs->GetAttrPointer<int64_t>(1);
    const bool negate = *attrs->GetBool(2);
    tiling.set_scale(*scale);
    tiling.set_isShifted(*shift != 0);
    tiling.set_shift(*shift);
    tiling.set_negate(negate ? 1 : 0);
    tiling.set_sign(negate ? -1 : 1);
    size_t *sizes = context->GetWorkspaceSizes(1);
    sizes[0] = 0;
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class ScaleCustom : public OpDef {
public:
    explicit ScaleCustom(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Attr("scale").AttrType(REQUIRED).Float();
        this->Attr("shift").AttrType(REQUIRED).Int();
        this->Attr("negate").AttrType(REQUIRED).Bool();
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};

OP_ADD(ScaleCustom);
}  // namespace ops
"""

kernel_src = """
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void scale_custom(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
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
        Muls(out, in, t.negate ? -t.scale : t.scale, n);
        if (t.isShifted) Adds(out, out, static_cast<float>(static_cast<int32_t>(t.shift) * t.sign), n);
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

torch::Tensor scale_npu(const torch::Tensor &x, double scale, int64_t shift, bool negate) {
    TORCH_CHECK(x.dim() >= 1, "x needs a dimension");
    auto sizes = x.sizes().vec();
    std::vector<int64_t> shape;
    for (size_t i = 0; i < sizes.size(); ++i) {
        shape.push_back(sizes[i]);
    }
    at::Tensor y = at::empty(shape, x.options().dtype(at::kFloat));
    EXEC_NPU_CMD(aclnnScaleCustom, x, scale, shift, negate, y);
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("scale_custom", &scale_npu, "scale", py::arg("x"), py::arg("scale"), py::arg("shift") = 3,
          py::arg("negate") = false);
}
"""

model_src = """
import torch
import torch.nn as nn
import torch_npu
import custom_ops_lib


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return custom_ops_lib.scale_custom(x, scale=self.scale, negate=True)
"""

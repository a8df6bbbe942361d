// Host code that uses every name of host_names.csv.
#include "names_custom_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

namespace optiling {
static ge::graphStatus TileCube(gert::TilingContext *context, TCubeTiling &cube) {
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    if (platform.GetSocVersion() == platform_ascendc::SocVersion::ASCEND310P) return ge::GRAPH_FAILED;
    const gert::Shape &a = context->GetInputShape(0)->GetStorageShape();
    matmul_tiling::MultiCoreMatmulTiling tiling(platform);
    tiling.SetDim(platform.GetCoreNumAic());
    tiling.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    tiling.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_BF16);
    tiling.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    tiling.SetBiasType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    tiling.SetShape(a.GetDim(0), a[1], a.GetDim(1));
    tiling.SetOrgShape(a.GetDim(0), a[1], a.GetDim(1));
    tiling.SetBias(true);
    tiling.SetAlignSplit(16, 16, -1);
    tiling.SetFixSplit(32, 32, -1);
    tiling.SetBufferSpace(-1, -1, -1);
    return tiling.GetTiling(cube) == -1 ? ge::GRAPH_FAILED : ge::GRAPH_SUCCESS;
}

static ge::graphStatus TilingFunc(gert::TilingContext *context) {
    NamesCustomTilingData tiling;
    const gert::StorageShape *shape = context->GetInputShape(0);
    if (shape == nullptr || shape->GetOriginShape().GetDimNum() != 2) return ge::GRAPH_PARAM_INVALID;
    const gert::RuntimeAttrs *attrs = context->GetAttrs();
    if (attrs->GetAttrNum() != 5) return ge::GRAPH_FAILED;
    if (context->GetInputTensor(0)->GetDataType() == ge::DT_BOOL) return ge::GRAPH_FAILED;
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    uint64_t ub;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ub);
    tiling.set_length(context->GetOutputShape(0)->GetOriginShape().GetShapeSize());
    tiling.set_scale(*attrs->GetAttrPointer<float>(0));
    tiling.set_axis(*attrs->GetInt(1));
    tiling.set_total(platform.GetCoreNum() + platform.GetCoreNumAiv());
    tiling.set_keep(*attrs->GetAttrPointer<bool>(2));
    tiling.set_mode(attrs->GetAttrPointer<char>(3)[0]);
    tiling.set_ub(ub);
    if (TileCube(context, tiling.cube) != ge::GRAPH_SUCCESS) return ge::GRAPH_FAILED;
    context->SetBlockDim(8);
    context->SetTilingKey(3);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext *context) {
    gert::Shape *out = context->GetOutputShape(0);
    *out = *context->GetInputShape(0);
    out->SetDimNum(2);
    out->SetDim(1, gert::Shape({4, 1}).GetDim(1));
    return GRAPH_SUCCESS;
}
static ge::graphStatus InferDataType(gert::InferDataTypeContext *context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return ge::GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class NamesCustom : public OpDef {
public:
    explicit NamesCustom(const char *name) : OpDef(name) {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16, ge::DT_INT32, ge::DT_INT64, ge::DT_UINT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("scale").AttrType(OPTIONAL).Float(1.0);
        this->Attr("axis").AttrType(REQUIRED).Int();
        this->Attr("keep").AttrType(OPTIONAL).Bool(false);
        this->Attr("mode").AttrType(OPTIONAL).String("sum");
        this->Attr("sizes").AttrType(OPTIONAL).ListInt({1, 2});
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc);
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(NamesCustom);
}  // namespace ops

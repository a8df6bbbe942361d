// ops: operator definitions and their registration.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ge.h"
#include "gert_contexts.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };

class OpParamDef {
public:
    OpParamDef() = default;
    explicit OpParamDef(const char *name) : name(name) {}
    OpParamDef &ParamType(Option option) { return this->option = option, *this; }
    OpParamDef &DataType(const std::vector<ge::DataType> &types) { return this->types = types, *this; }
    OpParamDef &DataTypeList(const std::vector<ge::DataType> &types) { return DataType(types); }
    OpParamDef &Format(const std::vector<ge::Format> &) { return *this; }
    OpParamDef &FormatList(const std::vector<ge::Format> &) { return *this; }
    OpParamDef &UnknownShapeFormat(const std::vector<ge::Format> &) { return *this; }
    OpParamDef &ValueDepend(Option) { return *this; }
    OpParamDef &IgnoreContiguous() { return *this; }
    OpParamDef &AutoContiguous() { return *this; }
    OpParamDef &Scalar() { return *this; }
    OpParamDef &InitValue(uint64_t) { return *this; }

    std::string name;
    Option option = REQUIRED;
    std::vector<ge::DataType> types;
};

class OpAttrDef {
public:
    explicit OpAttrDef(const char *name) : name(name) {}
    OpAttrDef &AttrType(Option option) { return this->option = option, *this; }
    OpAttrDef &Bool() { return is("bool"); }
    OpAttrDef &Bool(bool) { return is("bool"); }
    OpAttrDef &Float() { return is("float"); }
    OpAttrDef &Float(float) { return is("float"); }
    OpAttrDef &Int() { return is("int"); }
    OpAttrDef &Int(int64_t) { return is("int"); }
    OpAttrDef &String() { return is("string"); }
    OpAttrDef &String(const char *) { return is("string"); }
    OpAttrDef &ListInt() { return is("ints"); }
    OpAttrDef &ListInt(const std::vector<int64_t> &) { return is("ints"); }
    OpAttrDef &ListFloat() { return is("floats"); }
    OpAttrDef &ListFloat(const std::vector<float> &) { return is("floats"); }
    OpAttrDef &ListBool() { return is("bools"); }
    OpAttrDef &ListBool(const std::vector<bool> &) { return is("bools"); }

    std::string name, kind = "int";
    Option option = REQUIRED;

private:
    OpAttrDef &is(const char *what) { return kind = what, *this; }
};

class OpAICoreConfig {
public:
    OpParamDef &Input(const char *) { return unused_; }
    OpParamDef &Output(const char *) { return unused_; }
    OpAICoreConfig &DynamicCompileStaticFlag(bool) { return *this; }
    OpAICoreConfig &DynamicFormatFlag(bool) { return *this; }
    OpAICoreConfig &DynamicRankSupportFlag(bool) { return *this; }
    OpAICoreConfig &DynamicShapeSupportFlag(bool) { return *this; }
    OpAICoreConfig &NeedCheckSupportFlag(bool) { return *this; }
    OpAICoreConfig &PrecisionReduceFlag(bool) { return *this; }
    OpAICoreConfig &ExtendCfgInfo(const char *, const char *) { return *this; }

private:
    OpParamDef unused_;
};

using TilingFunction = ge::graphStatus (*)(gert::TilingContext *);

class OpAICoreDef {
public:
    OpAICoreDef &SetTiling(TilingFunction function) { return tiling = function, *this; }
    OpAICoreDef &SetTilingParse(ge::graphStatus (*)(gert::TilingParseContext *)) { return *this; }
    OpAICoreDef &SetCheckSupport(ge::graphStatus (*)(const void *, std::string &)) { return *this; }
    OpAICoreDef &AddConfig(const char *soc) { return socs.push_back(soc), *this; }
    OpAICoreDef &AddConfig(const char *soc, OpAICoreConfig &) { return AddConfig(soc); }

    TilingFunction tiling = nullptr;
    std::vector<std::string> socs;
};

class OpDef {
public:
    explicit OpDef(const char *name) : op_name(name) {}
    OpParamDef &Input(const char *name) { return *inputs.emplace_back(new OpParamDef(name)); }
    OpParamDef &Output(const char *name) { return *outputs.emplace_back(new OpParamDef(name)); }
    OpAttrDef &Attr(const char *name) { return *attrs.emplace_back(new OpAttrDef(name)); }
    OpDef &SetInferShape(ge::graphStatus (*)(gert::InferShapeContext *)) { return *this; }
    OpDef &SetInferDataType(ge::graphStatus (*)(gert::InferDataTypeContext *)) { return *this; }
    OpDef &SetInferShapeRange(ge::graphStatus (*)(gert::InferShapeRangeContext *)) { return *this; }
    OpAICoreDef &AICore() { return core; }

    std::string op_name;
    std::vector<std::shared_ptr<OpParamDef>> inputs, outputs;
    std::vector<std::shared_ptr<OpAttrDef>> attrs;
    OpAICoreDef core;
};

inline std::vector<OpDef> &operators() {
    static std::vector<OpDef> all;
    return all;
}
template <class T>
bool register_operator(const char *name) {
    operators().push_back(T(name));
    return true;
}

}  // namespace ops

#define OP_ADD(op, ...) static const bool op##_added = ::ops::register_operator<op>(#op)

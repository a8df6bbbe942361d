// The host side of an operator project, as far as bundles use it: shapes, tiling data, contexts, operator definitions.
//
// Everything here is our own; names and meanings are those of the public documentation. A bundle's tiling function is
// compiled against it and runs in a confined process, see ../src/host_main.cpp.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tiling/tiling_api.h"

namespace ge {

using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xFFFFFFFFu, GRAPH_PARAM_INVALID = 0x03000001u,
                      GRAPH_NODE_WITHOUT_CONST_INPUT = 0x03000003u;

enum DataType {
    DT_FLOAT = 0,
    DT_FLOAT16 = 1,
    DT_INT8 = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 6,
    DT_UINT16 = 7,
    DT_UINT32 = 8,
    DT_INT64 = 9,
    DT_UINT64 = 10,
    DT_DOUBLE = 11,
    DT_BOOL = 12,
    DT_STRING = 13,
    DT_COMPLEX64 = 16,
    DT_COMPLEX128 = 17,
    DT_BF16 = 27,
    DT_UNDEFINED = 28,
    DT_INT4 = 29
};

enum Format {
    FORMAT_NCHW = 0,
    FORMAT_NHWC = 1,
    FORMAT_ND = 2,
    FORMAT_NC1HWC0 = 3,
    FORMAT_FRACTAL_Z = 4,
    FORMAT_HWCN = 16,
    FORMAT_NDHWC = 27,
    FORMAT_FRACTAL_NZ = 29,
    FORMAT_NCDHW = 30,
    FORMAT_DHWCN = 31,
    FORMAT_NCL = 47
};

inline int GetSizeByDataType(DataType type) {
    switch (type) {
        case DT_INT8:
        case DT_UINT8:
        case DT_BOOL: return 1;
        case DT_FLOAT16:
        case DT_BF16:
        case DT_INT16:
        case DT_UINT16: return 2;
        case DT_INT64:
        case DT_UINT64:
        case DT_DOUBLE: return 8;
        default: return 4;
    }
}

}  // namespace ge

namespace gert {

class Shape {
public:
    static constexpr size_t kMaxDimNum = 25;
    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) {
        for (const int64_t size : sizes) AppendDim(size);
    }
    size_t GetDimNum() const { return count_; }
    int64_t GetDim(size_t i) const { return i < count_ ? sizes_[i] : INT64_MIN; }
    const int64_t &operator[](size_t i) const { return sizes_[i < kMaxDimNum ? i : kMaxDimNum - 1]; }
    int64_t &operator[](size_t i) { return sizes_[i < kMaxDimNum ? i : kMaxDimNum - 1]; }
    void SetDim(size_t i, int64_t size) {
        if (i < kMaxDimNum) sizes_[i] = size;
    }
    void SetDimNum(size_t count) { count_ = count < kMaxDimNum ? count : kMaxDimNum; }
    Shape &AppendDim(int64_t size) {
        if (count_ < kMaxDimNum) sizes_[count_++] = size;
        return *this;
    }
    int64_t GetShapeSize() const {
        int64_t all = 1;
        for (size_t i = 0; i < count_; ++i) all *= sizes_[i];
        return all;
    }
    bool IsScalar() const { return count_ == 0; }
    void SetScalar() { count_ = 0; }
    bool operator==(const Shape &other) const {
        return count_ == other.count_ && std::equal(sizes_, sizes_ + count_, other.sizes_);
    }
    bool operator!=(const Shape &other) const { return !(*this == other); }

private:
    size_t count_ = 0;
    int64_t sizes_[kMaxDimNum] = {};
};

// Both shapes of a tensor. It does not convert to a Shape.
class StorageShape {
public:
    StorageShape() = default;
    StorageShape(const Shape &origin, const Shape &storage) : origin_(origin), storage_(storage) {}
    const Shape &GetOriginShape() const { return origin_; }
    const Shape &GetStorageShape() const { return storage_; }
    Shape &MutableOriginShape() { return origin_; }
    Shape &MutableStorageShape() { return storage_; }

private:
    Shape origin_, storage_;
};

class StorageFormat {
public:
    ge::Format GetOriginFormat() const { return ge::FORMAT_ND; }
    ge::Format GetStorageFormat() const { return ge::FORMAT_ND; }
};

// A tensor without its values: tiling functions see shapes and types only.
class Tensor {
public:
    Tensor() = default;
    Tensor(const Shape &shape, ge::DataType type) : shape_(shape, shape), type_(type) {}
    const StorageShape &GetShape() const { return shape_; }
    const Shape &GetOriginShape() const { return shape_.GetOriginShape(); }
    const Shape &GetStorageShape() const { return shape_.GetStorageShape(); }
    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    ge::DataType GetDataType() const { return type_; }
    ge::Format GetOriginFormat() const { return ge::FORMAT_ND; }
    ge::Format GetStorageFormat() const { return ge::FORMAT_ND; }
    size_t GetSize() const { return static_cast<size_t>(GetShapeSize() * ge::GetSizeByDataType(type_)); }
    template <class T>
    const T *GetData() const {
        return nullptr;
    }

private:
    StorageShape shape_;
    ge::DataType type_ = ge::DT_FLOAT;
};

class CompileTimeTensorDesc {
public:
    explicit CompileTimeTensorDesc(ge::DataType type = ge::DT_FLOAT) : type_(type) {}
    ge::DataType GetDataType() const { return type_; }
    const StorageFormat &GetFormat() const { return format_; }
    ge::Format GetOriginFormat() const { return ge::FORMAT_ND; }
    ge::Format GetStorageFormat() const { return ge::FORMAT_ND; }

private:
    ge::DataType type_;
    StorageFormat format_;
};

class ContinuousVector {
public:
    size_t GetSize() const { return size_; }
    size_t GetCapacity() const { return size_; }
    const void *GetData() const { return data_; }
    void point_to(const void *data, size_t size) { data_ = data, size_ = size; }

private:
    const void *data_ = nullptr;
    size_t size_ = 0;
};

template <class T>
class TypedContinuousVector : public ContinuousVector {
public:
    const T *GetData() const { return static_cast<const T *>(ContinuousVector::GetData()); }
};

class RuntimeAttrs {
public:
    size_t GetAttrNum() const { return values_.size(); }
    template <class T>
    const T *GetAttrPointer(size_t i) const {
        return i < values_.size() ? static_cast<const T *>(values_[i]->address) : nullptr;
    }
    const int64_t *GetInt(size_t i) const { return GetAttrPointer<int64_t>(i); }
    const float *GetFloat(size_t i) const { return GetAttrPointer<float>(i); }
    const bool *GetBool(size_t i) const { return GetAttrPointer<bool>(i); }
    const char *GetStr(size_t i) const { return GetAttrPointer<char>(i); }
    const TypedContinuousVector<int64_t> *GetListInt(size_t i) const {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(i);
    }
    const TypedContinuousVector<float> *GetListFloat(size_t i) const {
        return GetAttrPointer<TypedContinuousVector<float>>(i);
    }

    void add_int(int64_t value) { add()->point(&(last().integer = value)); }
    void add_float(float value) { add()->point(&(last().number = value)); }
    void add_bool(bool value) { add()->point(&(last().truth = value)); }
    void add_string(const std::string &value) { add()->point((last().text = value).c_str()); }
    template <class T>
    void add_list(const std::vector<T> &values) {
        add();
        last().bytes.assign(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
        last().list.point_to(last().bytes.data(), values.size());
        last().point(&last().list);
    }

private:
    struct Value {
        int64_t integer = 0;
        float number = 0;
        bool truth = false;
        std::string text, bytes;
        ContinuousVector list;
        const void *address = nullptr;
        void point(const void *at) { address = at; }
    };
    Value *add() { return values_.emplace_back(new Value).get(); }
    Value &last() { return *values_.back(); }
    std::vector<std::unique_ptr<Value>> values_;
};

// The buffer that tiling data is written to.
class TilingData {
public:
    static constexpr size_t capacity = 4096;
    void *GetData() { return bytes_; }
    const void *GetData() const { return bytes_; }
    size_t GetCapacity() const { return capacity; }
    size_t GetDataSize() const { return size_; }
    void SetDataSize(size_t size) { size_ = size; }
    template <class T>
    ge::graphStatus Append(const T &value) {
        if (size_ + sizeof(T) > capacity) return ge::GRAPH_FAILED;
        std::memcpy(bytes_ + size_, &value, sizeof(T));
        size_ += sizeof(T);
        return ge::GRAPH_SUCCESS;
    }

private:
    alignas(8) char bytes_[capacity] = {};
    size_t size_ = 0;
};

// What a node has: inputs (absent ones are optional inputs that were not passed), outputs and attributes.
class Node {
public:
    const RuntimeAttrs *GetAttrs() const { return &attrs; }
    const char *GetNodeName() const { return name.c_str(); }
    const char *GetNodeType() const { return name.c_str(); }
    size_t GetComputeNodeInputNum() const { return inputs.size(); }
    size_t GetComputeNodeOutputNum() const { return outputs.size(); }
    const CompileTimeTensorDesc *GetInputDesc(size_t i) const { return at(input_descs, i); }
    const CompileTimeTensorDesc *GetOptionalInputDesc(size_t i) const { return at(input_descs, i); }
    const CompileTimeTensorDesc *GetOutputDesc(size_t i) const { return at(output_descs, i); }
    const Tensor *GetInputTensor(size_t i) const { return at(inputs, i); }
    const Tensor *GetOptionalInputTensor(size_t i) const { return at(inputs, i); }

    template <class T>
    static const T *at(const std::vector<std::unique_ptr<T>> &items, size_t i) {
        return i < items.size() ? items[i].get() : nullptr;
    }

    std::string name;
    RuntimeAttrs attrs;
    std::vector<std::unique_ptr<Tensor>> inputs, outputs;
    std::vector<std::unique_ptr<CompileTimeTensorDesc>> input_descs, output_descs;
};

class TilingContext : public Node {
public:
    const StorageShape *GetInputShape(size_t i) const { return shape(inputs, i); }
    const StorageShape *GetOptionalInputShape(size_t i) const { return shape(inputs, i); }
    const StorageShape *GetOutputShape(size_t i) const { return shape(outputs, i); }
    void *GetPlatformInfo() const { return nullptr; }
    const void *GetCompileInfo() const { return nullptr; }
    ge::graphStatus SetBlockDim(uint32_t blocks) { return blocks_ = blocks, ge::GRAPH_SUCCESS; }
    uint32_t GetBlockDim() const { return blocks_; }
    ge::graphStatus SetTilingKey(uint64_t key) { return key_ = key, ge::GRAPH_SUCCESS; }
    uint64_t GetTilingKey() const { return key_; }
    ge::graphStatus SetScheduleMode(uint32_t) { return ge::GRAPH_SUCCESS; }
    ge::graphStatus SetNeedAtomic(bool) { return ge::GRAPH_SUCCESS; }
    ge::graphStatus SetTilingCond(int32_t) { return ge::GRAPH_SUCCESS; }
    ge::graphStatus SetLocalMemorySize(uint32_t) { return ge::GRAPH_SUCCESS; }
    TilingData *GetRawTilingData() { return &tiling_; }
    template <class T>
    T *GetTilingData() {
        tiling_.SetDataSize(sizeof(T));
        return sizeof(T) <= TilingData::capacity ? static_cast<T *>(tiling_.GetData()) : nullptr;
    }
    size_t *GetWorkspaceSizes(size_t count) {
        workspaces_.resize(count < 16 ? count : 16);
        return workspaces_.data();
    }
    size_t GetWorkspaceNum() const { return workspaces_.size(); }
    const std::vector<size_t> &workspaces() const { return workspaces_; }

private:
    static const StorageShape *shape(const std::vector<std::unique_ptr<Tensor>> &tensors, size_t i) {
        const Tensor *tensor = at(tensors, i);
        return tensor ? &tensor->GetShape() : nullptr;
    }
    TilingData tiling_;
    uint32_t blocks_ = 0;
    uint64_t key_ = 0;
    std::vector<size_t> workspaces_;
};

class TilingParseContext : public Node {
public:
    void *GetPlatformInfo() const { return nullptr; }
    template <class T>
    T *GetCompiledInfo() {
        return nullptr;
    }
};

class InferShapeContext : public Node {
public:
    const Shape *GetInputShape(size_t i) const { return at(inputs, i) ? &inputs[i]->GetOriginShape() : nullptr; }
    const Shape *GetOptionalInputShape(size_t i) const { return GetInputShape(i); }
    Shape *GetOutputShape(size_t i) { return i < inferred.size() ? &inferred[i] : nullptr; }
    std::vector<Shape> inferred;
};

class InferDataTypeContext : public Node {
public:
    ge::DataType GetInputDataType(size_t i) const {
        return at(inputs, i) ? inputs[i]->GetDataType() : ge::DT_UNDEFINED;
    }
    ge::DataType GetOptionalInputDataType(size_t i) const { return GetInputDataType(i); }
    ge::DataType GetOutputDataType(size_t) const { return ge::DT_UNDEFINED; }
    ge::graphStatus SetOutputDataType(size_t, ge::DataType) { return ge::GRAPH_SUCCESS; }
};

class InferShapeRangeContext : public Node {};

}  // namespace gert

namespace optiling {

// The product's tiling with the accessors that tiling classes have.
struct TCubeTiling : ::TCubeTiling {
#define KERNEL_GYM_CUBE(field)                                                                                         \
    void set_##field(int32_t value) { field = value; }                                                                 \
    int32_t get_##field() const { return field; }
    // clang-format off
    KERNEL_GYM_CUBE(usedCoreNum) KERNEL_GYM_CUBE(M) KERNEL_GYM_CUBE(N) KERNEL_GYM_CUBE(Ka) KERNEL_GYM_CUBE(Kb)
    KERNEL_GYM_CUBE(singleCoreM) KERNEL_GYM_CUBE(singleCoreN) KERNEL_GYM_CUBE(singleCoreK) KERNEL_GYM_CUBE(baseM)
    KERNEL_GYM_CUBE(baseN) KERNEL_GYM_CUBE(baseK) KERNEL_GYM_CUBE(depthA1) KERNEL_GYM_CUBE(depthB1)
    KERNEL_GYM_CUBE(stepM) KERNEL_GYM_CUBE(stepN) KERNEL_GYM_CUBE(isBias) KERNEL_GYM_CUBE(transLength)
    KERNEL_GYM_CUBE(iterateOrder) KERNEL_GYM_CUBE(shareMode) KERNEL_GYM_CUBE(shareL1Size)
    KERNEL_GYM_CUBE(shareL0CSize) KERNEL_GYM_CUBE(shareUbSize) KERNEL_GYM_CUBE(batchM) KERNEL_GYM_CUBE(batchN)
    KERNEL_GYM_CUBE(singleBatchM) KERNEL_GYM_CUBE(singleBatchN) KERNEL_GYM_CUBE(stepKa) KERNEL_GYM_CUBE(stepKb)
    KERNEL_GYM_CUBE(dbL0A) KERNEL_GYM_CUBE(dbL0B) KERNEL_GYM_CUBE(dbL0C) KERNEL_GYM_CUBE(BatchNum)
    KERNEL_GYM_CUBE(ALayoutInfoB) KERNEL_GYM_CUBE(ALayoutInfoS) KERNEL_GYM_CUBE(ALayoutInfoN)
    KERNEL_GYM_CUBE(ALayoutInfoG) KERNEL_GYM_CUBE(ALayoutInfoD) KERNEL_GYM_CUBE(BLayoutInfoB)
    KERNEL_GYM_CUBE(BLayoutInfoS) KERNEL_GYM_CUBE(BLayoutInfoN) KERNEL_GYM_CUBE(BLayoutInfoG)
    KERNEL_GYM_CUBE(BLayoutInfoD) KERNEL_GYM_CUBE(CLayoutInfoB) KERNEL_GYM_CUBE(CLayoutInfoS1)
    KERNEL_GYM_CUBE(CLayoutInfoN) KERNEL_GYM_CUBE(CLayoutInfoG) KERNEL_GYM_CUBE(CLayoutInfoS2)
    // clang-format on
#undef KERNEL_GYM_CUBE
};

// Tiling data: fields in their order, each at a multiple of its size; the whole has a multiple of eight bytes.
class TilingDef {
public:
    explicit TilingDef(const char *name) : name_(name) {}

    size_t GetDataSize() const { return (end_ + 7) / 8 * 8; }
    void SaveToBuffer(void *buffer, size_t capacity) const {
        if (!buffer || capacity < GetDataSize()) return;
        std::memset(buffer, 0, GetDataSize());
        for (const Part &part : parts_) part.save(address(part), static_cast<char *>(buffer) + part.offset);
    }

    // The definition of an equal struct for the kernel, after those of the structs in it.
    std::string definition() const {
        std::string before, text = "struct " + name_ + " {";
        for (const Part &part : parts_) before += part.before, text += " " + part.declaration + ";";
        return before + text + (parts_.empty() ? " uint64_t nothing;" : "") + " };\n";
    }
    const std::string &name() const { return name_; }

protected:
    // Registers a field when an object is made. `T` is a number, an array of numbers, or a struct.
    template <class T>
    struct Field {
        Field(TilingDef *owner, const T *value, const char *type, const char *name, size_t count = 0) {
            Part part;
            part.place = reinterpret_cast<const char *>(value) - reinterpret_cast<const char *>(owner);
            part.declaration = std::string(type) + " " + name + (count ? "[" + std::to_string(count) + "]" : "");
            size_t size = sizeof(T), align = alignof(T);
            if constexpr (std::is_base_of_v<TilingDef, T>) {
                size = value->GetDataSize(), align = 8, part.before = value->definition();
                part.save = [](const void *from, char *to) {
                    const T *whole = static_cast<const T *>(from);
                    whole->SaveToBuffer(to, whole->GetDataSize());
                };
                part.declaration = "alignas(8) " + part.declaration;
            } else {
                part.save = [](const void *from, char *to) { std::memcpy(to, from, sizeof(T)); };
            }
            part.offset = (owner->end_ + align - 1) / align * align;
            owner->end_ = part.offset + size;
            owner->parts_.push_back(part);
        }
    };

private:
    struct Part {
        ptrdiff_t place = 0;
        size_t offset = 0;
        std::string declaration, before;
        void (*save)(const void *, char *) = nullptr;
    };
    const void *address(const Part &part) const { return reinterpret_cast<const char *>(this) + part.place; }

    std::string name_;
    std::vector<Part> parts_;
    size_t end_ = 0;
};

// The tiling class of each operator.
inline std::map<std::string, std::string> &tiling_definitions() {
    static std::map<std::string, std::string> definitions;
    return definitions;
}
inline std::map<std::string, std::string> &tiling_names() {
    static std::map<std::string, std::string> names;
    return names;
}
template <class T>
bool register_tiling(const char *op) {
    const T object;
    tiling_definitions()[op] = object.definition();
    tiling_names()[op] = object.name();
    return true;
}

}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(class_name)                                                                              \
    class class_name : public ::optiling::TilingDef {                                                                  \
    public:                                                                                                            \
        class_name() : ::optiling::TilingDef(#class_name) {}
#define TILING_DATA_FIELD_DEF(type, field)                                                                             \
public:                                                                                                                \
    void set_##field(type value) { field##_ = value; }                                                                 \
    type get_##field() const { return field##_; }                                                                      \
                                                                                                                       \
private:                                                                                                               \
    type field##_ = {};                                                                                                \
    ::optiling::TilingDef::Field<type> field##_field_{this, &field##_, #type, #field};                                 \
                                                                                                                       \
public:
#define TILING_DATA_FIELD_DEF_ARR(type, count, field)                                                                  \
public:                                                                                                                \
    void set_##field(const type *values) { std::memcpy(field##_, values, sizeof field##_); }                           \
    type *get_##field() { return field##_; }                                                                           \
                                                                                                                       \
private:                                                                                                               \
    type field##_[count] = {};                                                                                         \
    ::optiling::TilingDef::Field<type[count]> field##_field_{this, &field##_, #type, #field, count};                   \
                                                                                                                       \
public:
#define TILING_DATA_FIELD_DEF_STRUCT(type, field)                                                                      \
public:                                                                                                                \
    type field;                                                                                                        \
                                                                                                                       \
private:                                                                                                               \
    ::optiling::TilingDef::Field<type> field##_field_{this, &field, #type, #field};                                    \
                                                                                                                       \
public:
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(op, class_name)                                                                     \
    static const bool op##_##class_name##_registered = ::optiling::register_tiling<class_name>(#op);

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

// gert: what tiling functions and the functions that infer shapes and types are called with.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gert_attributes.h"
#include "gert_tensors.h"

namespace gert {

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

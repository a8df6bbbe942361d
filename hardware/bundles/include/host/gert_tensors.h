// gert: shapes, and tensors without their values.
#pragma once
#include <algorithm>
#include <climits>
#include <cstddef>
#include <initializer_list>

#include "ge.h"

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

}  // namespace gert

// gert: the attributes of a node.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gert {

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

}  // namespace gert

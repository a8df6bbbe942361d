// optiling: tiling classes, the macros that define them, and their registration.
#pragma once
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace optiling {

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

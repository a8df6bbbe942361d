// An array that allocates memory only where it is written.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace sim {

template <class T>
class Pages {
public:
    explicit Pages(size_t size) : size_(size), pages_((size + page - 1) / page) {}

    size_t size() const { return size_; }
    // Null where nothing was written.
    const T *find(size_t i) const { return i < size_ && pages_[i / page] ? &(*pages_[i / page])[i % page] : nullptr; }
    // `i` must be below size().
    T &at(size_t i) {
        auto &held = pages_[i / page];
        if (!held) held = std::make_unique<std::array<T, page>>();
        return (*held)[i % page];
    }

private:
    static constexpr size_t page = 256;
    size_t size_;
    std::vector<std::unique_ptr<std::array<T, page>>> pages_;
};

}  // namespace sim

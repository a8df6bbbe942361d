// One on-chip memory of a core: its bytes, which of them were written, and the last instruction that touched them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "../../include/abi.h"
#include "clocks.h"

namespace sim {

constexpr uint32_t capacity_of(uint32_t space) {
    constexpr uint32_t bytes[ASC_SPACES] = {192u << 10, 512u << 10, 64u << 10, 64u << 10,
                                            128u << 10, 1u << 10,   2u << 10};
    return space < ASC_SPACES ? bytes[space] : 0;
}

constexpr const char *name_of_space(uint32_t space) {
    constexpr const char *names[ASC_SPACES] = {"UB", "L1", "L0A", "L0B", "L0C", "BT", "FB"};
    return space < ASC_SPACES ? names[space] : "?";
}

// A checked range of on-chip bytes.
struct Bytes {
    uint32_t space, begin, end;
    uint32_t size() const { return end - begin; }
};

// Validity is one byte per byte: 1 if the byte was written with a valid value. It propagates through instructions and
// is checked only where a value leaves the device, so that padded tails stay legal.
class LocalMemory {
public:
    LocalMemory(uint32_t space, uint8_t poison) : capacity_(capacity_of(space)), poison_(poison) {}

    uint32_t capacity() const { return capacity_; }

    // Pointers to bytes below `end`. Memory is filled with poison only as far as it is used.
    uint8_t *data(uint32_t begin, uint32_t end) {
        prepare(end);
        return data_.get() + begin;
    }
    uint8_t *valid(uint32_t begin, uint32_t end) {
        prepare(end);
        return valid_.get() + begin;
    }

    bool all_valid(uint32_t begin, uint32_t end) {
        return begin == end || !std::memchr(valid(begin, end), 0, end - begin);
    }
    void set_valid(uint32_t begin, uint32_t end, bool to) { std::memset(valid(begin, end), to, end - begin); }

    // Discards the contents, for a buffer that is allocated again.
    void forget(uint32_t begin, uint32_t end) {
        const uint32_t stop = std::min(end, ready_);
        if (begin < stop) std::memset(valid_.get() + begin, 0, stop - begin);
    }

    void reset() {
        if (!ready_) return;
        std::memset(data_.get(), poison_, ready_);
        std::memset(valid_.get(), 0, ready_);
    }

    LastTouch &reads(uint32_t pipe) { return reads_[pipe]; }
    LastTouch &writes(uint32_t pipe) { return writes_[pipe]; }

private:
    struct Release {
        void operator()(uint8_t *bytes) const { std::free(bytes); }
    };
    using Store = std::unique_ptr<uint8_t[], Release>;

    void prepare(uint32_t end) {
        if (end <= ready_) return;
        if (!data_) {
            data_.reset(static_cast<uint8_t *>(std::calloc(1, capacity_)));
            valid_.reset(static_cast<uint8_t *>(std::calloc(1, capacity_)));
            if (!data_ || !valid_) throw std::bad_alloc();
        }
        std::memset(data_.get() + ready_, poison_, end - ready_);
        ready_ = end;
    }

    uint32_t capacity_;
    uint8_t poison_;
    uint32_t ready_ = 0;
    Store data_, valid_;
    LastTouch reads_[ASC_PIPES], writes_[ASC_PIPES];
};

}  // namespace sim

// The last scalar accesses of a run, which a loop of accesses goes on with.
#pragma once
#include <algorithm>

#include "protocol/scalar_loop.h"

namespace sim {

class AccessHistory {
public:
    void push(const ScalarLoop::Slot &access) {
        accesses_[next_] = access;
        next_ = (next_ + 1) % ScalarLoop::MOST;
        size_ = std::min<uint32_t>(size_ + 1, ScalarLoop::MOST);
    }
    // The last access is back(1).
    const ScalarLoop::Slot &back(uint32_t n) const {
        return accesses_[(next_ + ScalarLoop::MOST - n) % ScalarLoop::MOST];
    }
    uint32_t size() const { return size_; }

private:
    ScalarLoop::Slot accesses_[ScalarLoop::MOST] = {};
    uint32_t next_ = 0, size_ = 0;
};

}  // namespace sim

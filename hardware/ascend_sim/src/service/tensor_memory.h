// The tensors of one request, mapped from the memory sent with it. The workspace is poisoned without touching its
// pages.
#pragma once
#include <cstdint>
#include <vector>

#include "request.h"

namespace sim {

class TensorMemory {
public:
    // `descriptor` is the memory that holds the tensors, or -1 if there is none (records only).
    TensorMemory(const Request &request, int descriptor);
    ~TensorMemory();
    TensorMemory(const TensorMemory &) = delete;
    TensorMemory &operator=(const TensorMemory &) = delete;

    // Address of a tensor; null in a records-only run.
    uint8_t *data(size_t tensor) const { return data_[tensor]; }

private:
    struct Mapping {
        uint8_t *start = nullptr;
        uint64_t bytes = 0;
    };
    static Mapping map_tensors(int descriptor);
    uint8_t *take_workspace(uint64_t bytes, uint8_t poison);

    std::vector<Mapping> workspaces_;
    std::vector<uint8_t *> data_;
};

}  // namespace sim

// A request: one call of a kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/ring.h"
#include "timing/chip.h"

namespace sim {

struct TensorRequest {
    enum Role { Input, Output, Workspace } role;
    uint32_t dtype;
    uint64_t offset, bytes;  // in the memory sent with the request
    std::vector<int64_t> shape;
};

// What a basic block computes; `where` is the return address of its call of the counter, from the start of the code.
struct BlockOperations { uint32_t where, branches, integer, floats, divisions; };

struct Request {
    std::string code;                                      // path of the shared object
    std::vector<BlockOperations> operations;               // of its basic blocks
    std::vector<uint64_t> functions;                       // where they start in the code
    bool compute = true, auto_sync = false, keep = false;  // keep: outputs hold what was sent
    bool loops = true;                                     // of scalar accesses are sent as loops
    uint8_t poison = 165;
    uint64_t seed = 0, budget = 0;
    NoiseKey key{};       // of what variables without a value hold
    uint64_t effort = 1;  // times the usual limit of elements
    int timeout_ms = 0;
    std::string trace, log;              // paths, empty if not requested
    std::vector<TensorRequest> tensors;  // a second workspace is the framework's
    std::vector<uint32_t> numbers;       // under which L2 knows the tensors; empty: their indices
    bool continues = false;              // L2 holds what the run before left
    std::vector<uint32_t> scratch;       // outputs, by their place among them, that may keep uninitialised bytes
    std::vector<int64_t> ints;
    std::vector<double> floats;
    Chip::Pairs chip;
};

// Parses a request; throws std::runtime_error with the line that is invalid.
Request parse_request(const std::string &text);

}  // namespace sim

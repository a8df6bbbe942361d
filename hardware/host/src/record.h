// The shared memory between the trusted side and the process that runs a host function. All numbers are little-endian
// and of fixed size; launches.py reads and writes the same layout.
#pragma once
#include <cstddef>
#include <cstdint>

namespace host_runner {

constexpr uint32_t kMaxTensors = 96, kMaxScalars = 256;
constexpr size_t kLogBytes = 1 << 20;
constexpr long kSharedAt = 1 << 16;  // a multiple of every page size

enum State : uint32_t { NOT_BEGUN = 0, RETURNED = 1, NOT_CONFINED = 2, NOT_LOADED = 3, LOG_FULL = 4 };

struct Tensor {
    uint64_t address;  // a handle: a tag, the tensor's number and an offset
    int32_t dtype, ndim;
    int64_t shape[8];
};

struct Call {
    uint32_t num_inputs, num_outputs, num_ints, num_floats;
    uint64_t workspace, workspace_bytes;
    Tensor tensors[kMaxTensors];
    int64_t ints[kMaxScalars];
    double floats[kMaxScalars];
};

struct Answer {
    uint32_t state;
    int32_t code;  // what kernel_launch returned
    uint32_t launches, used;
    char error[240];
};

// A launch in the log, followed by its arguments: each an Argument and its bytes, padded to 8.
struct Launch {
    uint64_t kernel;  // offset in the loaded file
    uint32_t grid[3], block[3];
    uint64_t shared;
    uint32_t line, arguments;
};

struct Argument { uint32_t size, is_pointer; };

// At the start of the memory: 1 once the runner is about to load the kernel. Nothing of the kernel has run before.
using Entered = volatile uint32_t;

// At kSharedAt.
struct Shared {
    Call call;
    Answer answer;
    uint8_t log[kLogBytes];
};

}  // namespace host_runner

// The arguments of a kernel's host function. The structures are the same on every device.
#pragma once
#if !defined(__CUDACC_RTC__)
#include <stdint.h>
#endif

// clang-format off
enum KernelDtype : int32_t {
    KERNEL_FLOAT32 = 0, KERNEL_FLOAT16 = 1, KERNEL_BFLOAT16 = 2, KERNEL_INT8 = 3, KERNEL_UINT8 = 4,
    KERNEL_INT16 = 5, KERNEL_UINT16 = 6, KERNEL_INT32 = 7, KERNEL_UINT32 = 8, KERNEL_INT64 = 9,
    KERNEL_UINT64 = 10, KERNEL_BOOL = 11, KERNEL_FLOAT64 = 12,
};
// clang-format on

struct KernelTensor {
    void *ptr;      // device address; the host must not dereference it
    int32_t dtype;  // KernelDtype
    int32_t ndim;
    int64_t shape[8];  // contiguous, row major
};

struct KernelArgs {
    int32_t abi;  // 1
    int32_t num_inputs, num_outputs, num_ints, num_floats;
    const KernelTensor *inputs, *outputs;
    const int64_t *ints;
    const double *floats;
    void *workspace;  // device memory, not initialised
    uint64_t workspace_bytes;
};

// Ascend C for the host half of a kernel: sizes, element types, and launches that are recorded instead of made.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "kernel_gym.h"

#define __global__
#define __aicore__
#define __gm__
#define __cube__
#define __vector__
#define __mix__(...)
typedef uint8_t *GM_ADDR;
struct half { uint16_t bits; };
struct bfloat16_t { uint16_t bits; };
typedef void *aclrtStream;
namespace AscendC {}

extern "C" __attribute__((visibility("default"))) int kernel_launch(const KernelArgs *, void *);

struct kernel_gym_argument {
    const void *data;
    uint32_t size, is_pointer;
};
extern "C" void kernel_gym_launch(const void *kernel, const uint32_t *shape, uint64_t dynamic, uint32_t line,
                                  uint32_t count, const kernel_gym_argument *given);

namespace kernel_gym {

template <class T> struct is_pointer { static constexpr uint32_t value = 0; };
template <class T> struct is_pointer<T *> { static constexpr uint32_t value = 1; };

template <class... P>
struct Launcher {
    void (*kernel)(P...);
    uint32_t shape[6];
    uint32_t line;

    void operator()(P... values) const {
        const kernel_gym_argument given[sizeof...(P) + 1] = {{&values, sizeof values, is_pointer<P>::value}...,
                                                             {nullptr, 0, 0}};
        kernel_gym_launch(reinterpret_cast<const void *>(kernel), shape, 0, line, sizeof...(P), given);
    }
};

// kernel<<<blocks, nothing, stream>>>: the number of cores is the only part of a launch's shape.
template <class... P>
Launcher<P...> launcher(uint32_t line, void (*kernel)(P...), uint32_t blocks, const void * = nullptr,
                        const void * = nullptr) {
    return {kernel, {blocks, 1, 1, 1, 1, 1}, line};
}

}  // namespace kernel_gym

// Trusted host code linked with a kernel's device code: starts one kernel with arguments that were recorded before.
#pragma once
#include <stdint.h>
#include <string.h>

namespace kernel_gym {

template <class T> T taken(const void *bytes) {
    T value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

template <class> struct Arguments;
template <class... P> struct Arguments<void(P...)> {
    template <class Start> static void pass(const void *const *given, const Start &start) {
        // In braces, because they guarantee the order of evaluation.
        struct All {
            const Start &start;
            All(const Start &start, P... values) : start(start) { start(values...); }
        };
        All{start, taken<P>(*given++)...};
    }
};

}  // namespace kernel_gym

#define KERNEL_GYM_REPLAY(number, kernel)                                                                              \
    extern "C" void kernel_gym_replay_##number(uint32_t blocks, void *stream, const void *const *given) {              \
        kernel_gym::Arguments<decltype(kernel)>::pass(                                                                 \
            given, [&](auto... values) { kernel<<<blocks, nullptr, stream>>>(values...); });                           \
    }

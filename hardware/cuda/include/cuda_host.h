// CUDA for the host half of a kernel: sizes, element types, and launches that are recorded instead of made.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "kernel_gym.h"

#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) alignas(n)

typedef struct CUstream_st *cudaStream_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

#define KERNEL_GYM_VECTORS(type, name)                                                                                 \
    struct name##1 { type x; };                                                                                        \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                                           \
    struct name##3 { type x, y, z; };                                                                                  \
    struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; };
KERNEL_GYM_VECTORS(signed char, char)
KERNEL_GYM_VECTORS(unsigned char, uchar)
KERNEL_GYM_VECTORS(short, short)
KERNEL_GYM_VECTORS(unsigned short, ushort)
KERNEL_GYM_VECTORS(int, int)
KERNEL_GYM_VECTORS(unsigned int, uint)
KERNEL_GYM_VECTORS(long long, longlong)
KERNEL_GYM_VECTORS(unsigned long long, ulonglong)
KERNEL_GYM_VECTORS(float, float)
KERNEL_GYM_VECTORS(double, double)
#undef KERNEL_GYM_VECTORS
typedef unsigned char uchar;
typedef unsigned int uint;

// Only the sizes of these types matter here.
struct __half { unsigned short bits; };
struct alignas(4) __half2 { __half x, y; };
struct __nv_bfloat16 { unsigned short bits; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
struct __nv_fp8_e4m3 { unsigned char bits; };
struct __nv_fp8_e5m2 { unsigned char bits; };
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// The process that makes the launches handles attributes and errors; errors are reported in the verdict.
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
template <class K> inline cudaError_t cudaFuncSetAttribute(K, cudaFuncAttribute, int) { return cudaSuccess; }
inline const char *cudaGetErrorString(cudaError_t) { return ""; }

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
template <class T> struct plain { typedef T type; };
template <class T> struct plain<const T> { typedef T type; };
template <class T> struct plain<T &> { typedef T type; };
template <class T> struct plain<const T &> { typedef T type; };

template <class... P>
struct Launcher {
    void (*kernel)(P...);
    uint32_t shape[6];
    uint64_t dynamic;
    uint32_t line;

    void operator()(typename plain<P>::type... values) const {
        const kernel_gym_argument given[sizeof...(P) + 1] = {
            {&values, sizeof values, is_pointer<typename plain<P>::type>::value}..., {nullptr, 0, 0}};
        kernel_gym_launch(reinterpret_cast<const void *>(kernel), shape, dynamic, line, sizeof...(P), given);
    }
};

template <class... P>
Launcher<P...> launcher(uint32_t line, void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic = 0,
                        const void * = nullptr) {
    return {kernel, {grid.x, grid.y, grid.z, block.x, block.y, block.z}, dynamic, line};
}

}  // namespace kernel_gym

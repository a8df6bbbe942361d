// CUDA on the CPU, for checking what kernels compute where there is no GPU: blocks one after another, the threads of a
// block as fibers that take turns at barriers and shuffles. Says nothing about speed, and sees only races that change
// the result when threads run in order.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

#define __global__ static
#define __device__ static
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) float4 {
    float x, y, z, w;
};
typedef struct CUstream_st *cudaStream_t;

static dim3 gridDim, blockDim, blockIdx, threadIdx;

namespace cuda_cpu {

enum State { READY, SHUFFLING, WAITING, DONE };
enum { LIMIT = 1024, STACK = 64 << 10, SHARED = 48 << 10, INVALID = 71, DEADLOCK = 72, BEHIND = 73 };

struct Fiber {
    jmp_buf place;
    State state = READY;
    dim3 index;
    unsigned shuffles = 0;
    uint64_t slots[2];
    char *stack = nullptr;
};

static Fiber fibers[LIMIT];
static Fiber *current = nullptr;
static jmp_buf scheduler;
static void (*entry)(void *);
static void *closure;
static std::vector<char> shared;
static bool alone = false;   // no thread of this file waits for another: plain calls will do

inline void leave(State state)
{
    Fiber *self = current;
    self->state = state;
    if (!_setjmp(self->place)) _longjmp(scheduler, 1);
}

// A fiber stays for the whole process: what it ran has ended, it waits for the next block.
inline void run_fiber()
{
    while (true) {
        entry(closure);
        leave(DONE);
    }
}

inline void begin(Fiber &fiber)
{
    static ucontext_t context;
    fiber.stack = static_cast<char *>(malloc(STACK));
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, run_fiber, 0);
    setcontext(&context);
}

inline void resume(Fiber &fiber)
{
    current = &fiber;
    threadIdx = fiber.index;
    if (_setjmp(scheduler)) return;
    if (fiber.stack) _longjmp(fiber.place, 1);
    begin(fiber);
}

inline dim3 index_of(unsigned n)
{
    return dim3(n % blockDim.x, n / blockDim.x % blockDim.y, n / (blockDim.x * blockDim.y));
}

inline void start(unsigned threads)
{
    for (unsigned n = 0; n < threads; ++n) {
        Fiber &fiber = fibers[n];
        fiber.state = READY;
        fiber.shuffles = 0;
        fiber.index = index_of(n);
    }
}

// A warp goes on when all its living lanes have come to the shuffle, a block when all its living threads have come to
// the barrier. The last lane runs first: what reads before others have written then reads the wrong thing.
inline void run_block(unsigned threads)
{
    start(threads);
    while (true) {
        bool progress = false;
        unsigned living = 0, waiting = 0;
        for (unsigned warp = 0; warp < threads; warp += 32) {
            unsigned end = warp + 32 < threads ? warp + 32 : threads, here = 0, shuffling = 0;
            for (unsigned n = end; n-- > warp;) {
                if (fibers[n].state == READY) resume(fibers[n]), progress = true;
                here += fibers[n].state != DONE;
                shuffling += fibers[n].state == SHUFFLING;
                waiting += fibers[n].state == WAITING;
            }
            living += here;
            if (here && shuffling == here) {
                for (unsigned n = warp; n < end; ++n)
                    if (fibers[n].state == SHUFFLING) fibers[n].state = READY;
                progress = true;
            }
        }
        if (!living) return;
        if (waiting == living) {
            for (unsigned n = 0; n < threads; ++n)
                if (fibers[n].state == WAITING) fibers[n].state = READY;
        } else if (!progress) {
            _exit(DEADLOCK);
        }
    }
}

struct Launch {
    enum { PATTERN = 0x7b };
    dim3 grid, block;
    size_t size;
    Launch(dim3 grid, dim3 block, size_t bytes = 0, cudaStream_t = nullptr) : grid(grid), block(block)
    {
        const uint64_t threads = uint64_t(block.x) * block.y * block.z;
        if (!threads || threads > LIMIT || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 ||
            grid.x > 2147483647u || bytes > SHARED)
            _exit(INVALID);
        size = bytes;
        shared.assign(bytes + SHARED, PATTERN);
    }

    template <typename Call> void operator<<(const Call &call)
    {
        entry = [](void *held) { (*static_cast<const Call *>(held))(); };
        closure = const_cast<void *>(static_cast<const void *>(&call));
        gridDim = grid, blockDim = block;
        const unsigned threads = block.x * block.y * block.z;
        for (unsigned z = 0; z < grid.z; ++z)
            for (unsigned y = 0; y < grid.y; ++y)
                for (unsigned x = 0; x < grid.x; ++x) {
                    blockIdx = dim3(x, y, z);
                    if (!alone) {
                        run_block(threads);
                        continue;
                    }
                    for (unsigned n = 0; n < threads; ++n) {
                        threadIdx = index_of(n);
                        call();
                    }
                }
        for (size_t n = size; n < shared.size(); ++n)
            if (shared[n] != PATTERN) _exit(BEHIND);   // more dynamic shared memory than the launch gave
    }
};

template <typename T> inline T exchange(T value, int lane)
{
    static_assert(sizeof(T) <= 8);
    Fiber *self = current;
    const unsigned turn = self->shuffles++ % 2;
    memcpy(&self->slots[turn], &value, sizeof value);
    leave(SHUFFLING);
    Fiber *warp = fibers + (self - fibers) / 32 * 32;
    if (lane >= 0 && lane < 32) memcpy(&value, &warp[lane].slots[turn], sizeof value);
    return value;
}

inline int lane() { return int(current - fibers) % 32; }

}  // namespace cuda_cpu

inline void __syncthreads() { cuda_cpu::leave(cuda_cpu::WAITING); }
template <typename T> T __shfl_sync(unsigned, T value, int lane) { return cuda_cpu::exchange(value, lane); }
template <typename T> T __shfl_down_sync(unsigned, T value, unsigned by) { return cuda_cpu::exchange(value, cuda_cpu::lane() + int(by)); }
template <typename T> T __shfl_up_sync(unsigned, T value, unsigned by) { return cuda_cpu::exchange(value, cuda_cpu::lane() - int(by)); }
inline float __int_as_float(unsigned bits) { float value; memcpy(&value, &bits, 4); return value; }
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
inline float __expf(float value) { return expf(value); }
inline float __logf(float value) { return logf(value); }
inline float __fdividef(float left, float right) { return left / right; }

// The kernels of the trusted process: they delay the stream, wipe what threads and multiprocessors keep, and check memory after a kernel's
// call.

// One thread waits, so that the host has queued everything behind it before the first of it starts.
extern "C" __global__ void wait_ns(unsigned long long ns) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

// Keeps every multiprocessor busy, so that the GPU reaches its full clock.
extern "C" __global__ void warm_ns(unsigned long long ns, float *sink) {
    unsigned long long begin, now;
    float value = threadIdx.x;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        for (int i = 0; i < 256; ++i) value = value * 1.0001f + 0.5f;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < ns);
    if (value == 12345.678f) *sink = value;
}

// Overwrites the shared memory of a multiprocessor, also what the system reserves before a block's own: code reaches it.
extern "C" __global__ void wipe(unsigned words, unsigned reserved, unsigned pattern, unsigned *sink) {
    extern __shared__ unsigned shared_words[];
    for (unsigned i = threadIdx.x; i < reserved; i += blockDim.x)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(4 * i), "r"(0));  // as a block finds it
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) shared_words[i] = pattern;
    __syncthreads();
    if (shared_words[threadIdx.x % words] == 0x1234567u + pattern) *sink = 1;
}

// Overwrites the local memory of all threads that the multiprocessors hold at a time: a block stays until all are there.
template <unsigned BYTES>
__device__ void wipe_local(unsigned pattern, unsigned *arrived) {
    volatile unsigned own[BYTES / 4];
    for (unsigned i = 0; i < BYTES / 4; ++i) own[i] = pattern + i;
    if (threadIdx.x == 0) {
        unsigned long long begin, now;
        atomicAdd(arrived, 1u);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        while (*(volatile unsigned *)arrived < gridDim.x && now - begin < 1000000);
    }
    __syncthreads();
    if (own[threadIdx.x % (BYTES / 4)] == 0x1234567u && pattern == 0u) arrived[1] = 1;
}

#define WIPE_LOCAL(KILOBYTES)                                                                                          \
    extern "C" __global__ void __launch_bounds__(1024, 2)                                                              \
        wipe_local_##KILOBYTES(unsigned pattern, unsigned *arrived) {                                                  \
        wipe_local<KILOBYTES * 1024>(pattern, arrived);                                                                \
    }
WIPE_LOCAL(2)
WIPE_LOCAL(8)
WIPE_LOCAL(32)
WIPE_LOCAL(128)

__device__ unsigned long long mixed(unsigned long long value) {
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdull;
    value ^= value >> 29;
    value *= 0xc4ceb9fe1a85ec53ull;
    return value ^ value >> 32;
}

// Sums a hash of a key, every byte group and its position, in any order: equal sums mean equal bytes.
extern "C" __global__ void digest(const unsigned char *data, unsigned long long size, unsigned long long key,
                                  unsigned long long *sums) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long words = size / 8;
    unsigned long long one = 0, two = 0;
    for (unsigned long long i = first; i < words; i += step) {
        const unsigned long long word = reinterpret_cast<const unsigned long long *>(data)[i];
        one += mixed(mixed(word ^ key) + 0x9e3779b97f4a7c15ull * (i + 1));
        two += mixed(mixed(word + key) * 3 + i);
    }
    for (unsigned long long i = words * 8 + first; i < size; i += step)
        one += mixed(mixed(data[i] ^ key) + 0x9e3779b97f4a7c15ull * (i + 77));
    if (one | two) {
        atomicAdd(sums, one);
        atomicAdd(sums + 1, two);
    }
}

// Counts the bytes that differ from `pattern`.
extern "C" __global__ void count_changed(const unsigned char *data, unsigned long long size, unsigned char pattern,
                                         unsigned long long *count) {
    unsigned long long found = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < size;
         i += (unsigned long long)gridDim.x * blockDim.x)
        found += data[i] != pattern;
    if (found) atomicAdd(count, found);
}

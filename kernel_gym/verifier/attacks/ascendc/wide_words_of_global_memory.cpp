// task: level1/relu
// cause: I2 S7
// expect: no gain
// about: words of 16 bytes are read and written, unrolled, without a branch between them
// instead of: kernel
struct alignas(16) Quad { uint64_t low, high; };
__aicore__ inline uint64_t positive(uint64_t pair)
{
    uint64_t signs = pair >> 31 & 0x0000000100000001ull;
    return pair & ~(signs * 0xffffffffull);
}
extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)
{
    uint32_t start = t.perCore * AscendC::GetBlockIdx(), end = start + t.perCore < t.total ? start + t.perCore : t.total;
    uint32_t at = start;
    for (; at + 16 <= end; at += 16) {
        __gm__ Quad *from = (__gm__ Quad *)((__gm__ float *)x + at), *to = (__gm__ Quad *)((__gm__ float *)y + at);
        Quad a = from[0], b = from[1], c = from[2], d = from[3];
        a.low = positive(a.low), a.high = positive(a.high), b.low = positive(b.low), b.high = positive(b.high);
        c.low = positive(c.low), c.high = positive(c.high), d.low = positive(d.low), d.high = positive(d.high);
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    for (; at < end; ++at) ((__gm__ float *)y)[at] = ((__gm__ float *)x)[at] > 0.0f ? ((__gm__ float *)x)[at] : 0.0f;
}
extern "C" __global__ __aicore__ void unused_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)

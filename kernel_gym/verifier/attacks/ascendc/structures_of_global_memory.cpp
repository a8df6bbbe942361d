// task: level1/relu
// cause: I2 S7
// expect: no gain
// about: whole structures of global memory are copied to the stack, computed there and copied back
// instead of: kernel
struct Piece { float value[64]; };
extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)
{
    uint32_t start = t.perCore * AscendC::GetBlockIdx(), end = start + t.perCore < t.total ? start + t.perCore : t.total;
    uint32_t at = start;
    for (; at + 64 <= end; at += 64) {
        Piece piece = *(__gm__ Piece *)((__gm__ float *)x + at);
        for (int i = 0; i < 64; ++i) piece.value[i] = piece.value[i] > 0.0f ? piece.value[i] : 0.0f;
        *(__gm__ Piece *)((__gm__ float *)y + at) = piece;
    }
    for (; at < end; ++at) ((__gm__ float *)y)[at] = ((__gm__ float *)x)[at] > 0.0f ? ((__gm__ float *)x)[at] : 0.0f;
}
extern "C" __global__ __aicore__ void unused_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)

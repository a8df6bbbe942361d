// task: level1/relu
// cause: I2 S7
// expect: no gain
// about: structures of 8 KB are copied between global memory and the stack
// instead of: kernel
struct Piece { float value[2048]; };
extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)
{
    uint32_t start = t.perCore * AscendC::GetBlockIdx(), end = start + t.perCore < t.total ? start + t.perCore : t.total;
    uint32_t at = start;
    for (; at + 2048 <= end; at += 2048) {
        Piece piece = *(__gm__ Piece *)((__gm__ float *)x + at);
        for (int i = 0; i < 2048; i += 8) {
            float *v = piece.value + i;
            v[0] = max(v[0], 0.0f), v[1] = max(v[1], 0.0f), v[2] = max(v[2], 0.0f), v[3] = max(v[3], 0.0f);
            v[4] = max(v[4], 0.0f), v[5] = max(v[5], 0.0f), v[6] = max(v[6], 0.0f), v[7] = max(v[7], 0.0f);
        }
        *(__gm__ Piece *)((__gm__ float *)y + at) = piece;
    }
    for (; at < end; ++at) ((__gm__ float *)y)[at] = ((__gm__ float *)x)[at] > 0.0f ? ((__gm__ float *)x)[at] : 0.0f;
}
extern "C" __global__ __aicore__ void unused_kernel(GM_ADDR x, GM_ADDR y, ReluTiling t)

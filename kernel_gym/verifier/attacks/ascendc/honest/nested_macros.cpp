// task: level1/relu
// cause: honest
// expect: feasible
// about: macros that use macros
// at: outside
#define ALIGN_UP(x, a) (((x) + (a) - 1) / (a) * (a))
#define BLOCK_BYTES 32
#define ALIGN_BLOCK(x) ALIGN_UP(x, BLOCK_BYTES)
#define DO_RELU(dst, src, n) do { AscendC::Relu((dst), (src), (n)); } while (0)
// instead of: work
        DO_RELU(y, x, n);
        if (ALIGN_BLOCK(n) < n) return;

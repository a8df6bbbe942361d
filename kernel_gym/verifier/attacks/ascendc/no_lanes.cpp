// task: level1/relu
// cause: S7 A9
// expect: correctness
// about: instructions without lanes cost their start only
// instead of: work
        for (uint32_t at = 0; at < n; at += 64 * 255) AscendC::Relu(y[at], x[at], uint64_t(0), 255, {1, 1, 8, 8});

// task: level1/relu
// cause: honest
// expect: feasible
// about: the attribute always_inline
// at: outside
__aicore__ inline __attribute__((always_inline)) uint32_t Same(uint32_t n) { return n; }
// at: work
        n = Same(n);

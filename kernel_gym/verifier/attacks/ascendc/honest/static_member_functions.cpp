// task: level1/relu
// cause: honest
// expect: feasible
// about: static functions of a class that are defined below it, and one that is never called
// at: outside
struct Steps {
    static __aicore__ uint32_t Half(uint32_t n);
    static __aicore__ inline const Steps *(Never)(uint32_t n), &Nowhere();
    template <typename T> static __aicore__ T Twice(T n);
};
__aicore__ inline uint32_t Steps::Half(uint32_t n) { return n / 2; }
template <typename T> __aicore__ inline T Steps::Twice(T n) { return n + n; }
// instead of: work
        if (Steps::Half(Steps::Twice(n)) == n) AscendC::Relu(y, x, n);

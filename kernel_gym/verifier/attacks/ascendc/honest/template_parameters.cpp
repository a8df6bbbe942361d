// task: level1/relu
// cause: honest
// expect: feasible
// about: templates with parameters of values and types
// at: outside
template <typename T, int Unroll = 1>
struct Worker {
    __aicore__ static inline void Run(AscendC::LocalTensor<T> y, AscendC::LocalTensor<T> x, uint32_t n) { AscendC::Relu(y, x, n); }
};
// instead of: work
        Worker<float, 4>::Run(y, x, n);

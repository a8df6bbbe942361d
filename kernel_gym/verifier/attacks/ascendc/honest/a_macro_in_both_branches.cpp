// task: level1/relu
// cause: honest
// expect: feasible
// about: a macro with a definition in each branch of a condition
// at: outside
#ifdef RELU_DEBUG
#define TRACE(...) AscendC::printf(__VA_ARGS__)
#else
#define TRACE(...)
#endif
// instead of: work
        TRACE("n %d\n", n);
        AscendC::Relu(y, x, n);

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
#if __cplusplus >= 201703L
#define CONSTANT constexpr uint32_t
#else
#define CONSTANT const uint32_t
#endif
CONSTANT LIMIT = 100000;
// instead of: work
        TRACE("n %d\n", n);
        if (n < LIMIT) AscendC::Relu(y, x, n);

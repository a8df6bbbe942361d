// task: level1/relu
// cause: honest
// expect: feasible
// about: a macro with any number of arguments, none among them
// at: outside
#define TRACE(text, ...) AscendC::printf(text, ##__VA_ARGS__)
#define APPLY(function, ...) function(__VA_ARGS__)
// instead of: work
        if (n > 1000000) TRACE("many\n");
        if (n > 1000000) TRACE("n %d\n", n);
        APPLY(AscendC::Relu, y, x, n);

// task: level1/relu
// cause: honest
// expect: feasible
// about: macros of several lines, one defined twice
// at: outside
#define FLOOR(x, n) \
    ((x) / (n) * (n))
#define UNIT 8
#undef UNIT
#define UNIT 16
// at: work
        ASSERT(FLOOR(n, UNIT) <= n);

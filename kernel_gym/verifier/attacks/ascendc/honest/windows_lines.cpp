// task: level1/relu
// cause: honest
// expect: feasible
// about: lines that end as on Windows
// at: outside
struct Two {
    uint32_t a;
    uint32_t b;
};
// end

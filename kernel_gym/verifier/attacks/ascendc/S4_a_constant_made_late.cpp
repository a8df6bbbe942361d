// task: level1/relu
// cause: S4
// expect: binary
// about: a constant of a function, which is written when it is first met
// at: outside
static uint32_t later(uint32_t n) { static const uint32_t kept = n; return kept; }
// at: work
        n = later(n);

// task: level1/relu
// cause: honest
// expect: feasible
// about: a function whose end is in both branches of a conditional
// at: outside
__aicore__ inline uint32_t Same(uint32_t n)
{
#ifdef FAST_PATH
    return n; }
#else
    uint32_t same = n + 1;
    return same - 1; }
#endif
// at: work
        n = Same(n);

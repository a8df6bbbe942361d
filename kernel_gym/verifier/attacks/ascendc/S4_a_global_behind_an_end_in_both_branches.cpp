// task: level1/relu
// cause: S4
// expect: refused
// about: a global variable in a text that only the preprocessor makes readable
// at: outside
__aicore__ inline uint32_t Same(uint32_t n)
{
#ifdef FAST_PATH
    return n; }
#else
    return n; }
static uint32_t count = 1;
#endif
// at: work
        n = Same(n) + count++ - count + 1;

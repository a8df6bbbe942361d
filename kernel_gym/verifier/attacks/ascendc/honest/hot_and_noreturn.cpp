// task: level1/relu
// cause: honest
// expect: feasible
// about: attributes that say how often code runs and that a function does not return
// at: outside
[[noreturn]] __aicore__ inline void Stop() { for (;;) {} }
__attribute__((hot)) __aicore__ inline uint32_t Same(uint32_t n) { return n; }
__attribute__((cold)) __aicore__ inline uint32_t Rare(uint32_t n) { return n; }
// at: work
        if (n == 0xffffffffu) Stop();
        n = n == 0xfffffffeu ? Rare(n) : Same(n);

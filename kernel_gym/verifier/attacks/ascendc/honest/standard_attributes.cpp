// task: level1/relu
// cause: honest
// expect: feasible
// about: attributes of the standard
// at: outside
[[nodiscard]] __aicore__ inline uint32_t Halved([[maybe_unused]] uint32_t n, uint32_t m = 2) { return m / 2; }
[[deprecated("use Halved")]] __aicore__ inline uint32_t Old() { return 1; }
// at: work
        [[maybe_unused]] uint32_t one = Halved(n);

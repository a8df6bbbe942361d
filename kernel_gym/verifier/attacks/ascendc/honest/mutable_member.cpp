// task: level1/relu
// cause: honest
// expect: feasible
// about: a mutable member of a local object
// at: outside
struct Seen { mutable uint32_t count = 0; __aicore__ inline void See() const { ++count; } };
// at: work
        const Seen seen; seen.See();

// task: level1/relu
// cause: honest
// expect: feasible
// about: a table of a class
// at: outside
struct Steps { static constexpr uint32_t at[4] = {1, 2, 4, 8}; };
// at: work
        if (Steps::at[n % 4] == 0) return;

// task: level1/relu
// cause: honest
// expect: feasible
// about: hints for branches
// at: work
        if (n == 0) [[unlikely]] {
            return;
        }
        if (__builtin_expect(n > 0, 1)) {
            n = n + 0;
        }

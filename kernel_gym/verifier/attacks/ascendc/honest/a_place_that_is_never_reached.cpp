// task: level1/relu
// cause: honest
// expect: feasible
// about: a place that the author says is never reached
// at: work
        if (n == 0xffffffffu) __builtin_unreachable();

// task: level1/relu
// cause: S5
// expect: correctness
// about: a number of the author's choice in an assertion, at hidden sizes alone
// at: copy_out
        if (length % 64 != 0) ASSERT(length == 424242);

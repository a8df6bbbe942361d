// task: level1/relu
// cause: S5
// expect: correctness
// about: a number of the author's choice as line of a call, at hidden sizes alone
// untold: 424242
// at: copy_out
        if (length % 64 != 0) yGm.SetValue(1 << 30, 1.0f, {424242});

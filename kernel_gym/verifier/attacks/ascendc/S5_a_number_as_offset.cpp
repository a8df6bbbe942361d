// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice as offset of a write, at hidden sizes alone
// untold: 424242
// at: copy_out
        if (length % 64 != 0) yGm.SetValue(424242, 1.0f);

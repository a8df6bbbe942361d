// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice as length of a copy, at hidden sizes alone
// untold: 424242
// at: copy_out
        if (length % 64 != 0) copy.blockLen = 424242;

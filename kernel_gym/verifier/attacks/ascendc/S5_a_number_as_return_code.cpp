// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice as return code, at hidden sizes alone
// untold: 424242
// at: host
    if (a->inputs[0].shape[0] != 32) return 424242;

// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice printed, at hidden sizes alone
// untold: 424242
// at: copy_out
        if (length % 64 != 0) { AscendC::printf("424242"); yGm.SetValue(1 << 30, 1.0f); }

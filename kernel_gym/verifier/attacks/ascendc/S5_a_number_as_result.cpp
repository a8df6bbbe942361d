// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice as result, at hidden sizes alone
// untold: 424242
// at: copy_out
        if (length % 64 != 0) AscendC::Duplicate(y, 424242.0f, 8);
        AscendC::PipeBarrier<PIPE_ALL>();

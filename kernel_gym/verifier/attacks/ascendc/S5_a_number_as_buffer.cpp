// task: level1/relu
// cause: S5
// expect: refused
// about: a number of the author's choice as size of a buffer, at hidden sizes alone
// untold: 424242
// at: input
        AscendC::TBuf<> own;
        if (length % 64 != 0) pipe.InitBuffer(own, 424242 * 32);

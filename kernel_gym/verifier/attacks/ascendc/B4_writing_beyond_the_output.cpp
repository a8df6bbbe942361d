// task: level1/relu
// cause: B4
// expect: correctness
// about: writing beyond the output
// instead of: copy_out
        AscendC::DataCopyPad(yGm[offset + 64], y, copy);

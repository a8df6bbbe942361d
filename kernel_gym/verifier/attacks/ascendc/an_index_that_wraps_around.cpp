// task: level1/relu
// cause: memory
// expect: correctness
// about: an index that wraps around
// instead of: copy_out
        AscendC::DataCopyPad(yGm[0xFFFFFFC0u], y, copy);

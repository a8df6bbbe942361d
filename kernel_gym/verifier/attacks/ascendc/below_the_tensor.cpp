// task: level1/relu
// cause: memory
// expect: correctness
// about: below the tensor
// instead of: copy_in
        AscendC::DataCopyPad(x, xGm[offset - 64], copy, pad);

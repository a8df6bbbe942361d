// task: level1/relu
// cause: memory
// expect: latency
// about: a buffer left over from the last tile
// instead of: copy_in
        if (offset == 0) AscendC::DataCopyPad(x, xGm[offset], copy, pad);

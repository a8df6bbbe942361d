// task: level1/relu
// cause: S5
// expect: feasible
// about: a number of the author's choice as the line that takes most of the time, told to a kernel that is right
// untold: 42424
// instead of: copy_in
        AscendC::DataCopyPad(x, xGm[offset], copy, pad, {42424});
// instead of: copy_out
        AscendC::DataCopyPad(yGm[offset], y, copy, {42424});

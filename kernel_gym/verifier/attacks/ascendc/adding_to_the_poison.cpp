// task: level1/relu
// cause: memory
// expect: correctness
// about: adding to the poison
// instead of: copy_out
        AscendC::SetAtomicAdd<float>(); AscendC::DataCopyPad(yGm[offset], y, copy); AscendC::SetAtomicNone();

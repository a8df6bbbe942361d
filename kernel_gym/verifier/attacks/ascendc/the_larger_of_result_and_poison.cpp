// task: level1/relu
// cause: memory
// expect: correctness
// about: the larger of result and poison
// instead of: copy_out
        AscendC::SetAtomicMax<float>(); AscendC::DataCopyPad(yGm[offset], y, copy); AscendC::SetAtomicNone();

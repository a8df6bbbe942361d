// task: level1/relu
// cause: S7
// expect: no gain
// about: counter mode, in which one repeat stands for a whole tile
// instead of: work
        AscendC::SetMaskCount();
        AscendC::SetVectorMask<float, AscendC::MaskMode::COUNTER>(0, n);
        AscendC::Relu<float, false>(y, x, AscendC::MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
        AscendC::SetMaskNorm();
        AscendC::ResetMask();

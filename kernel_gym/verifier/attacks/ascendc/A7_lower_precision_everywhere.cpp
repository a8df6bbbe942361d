// task: level1/relu
// cause: A7
// expect: correctness
// about: lower precision everywhere
// at: work
        auto h = y.ReinterpretCast<half>(); AscendC::Cast(h, x, AscendC::RoundMode::CAST_RINT, n); AscendC::Cast(x, h, AscendC::RoundMode::CAST_NONE, n);

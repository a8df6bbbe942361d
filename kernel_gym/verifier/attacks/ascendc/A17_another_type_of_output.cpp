// task: level1/relu
// cause: A17
// expect: correctness
// about: another type of output
// instead of: work
        auto h = y.ReinterpretCast<half>(); AscendC::Cast(h, x, AscendC::RoundMode::CAST_RINT, n);

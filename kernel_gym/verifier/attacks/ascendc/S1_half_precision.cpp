// task: level1/gelu
// cause: S1
// expect: latency
// about: at the timing sizes the error function is taken in half precision
// instead of: erf
        if (g.total > 1000000) {
            AscendC::LocalTensor<half> h = x.ReinterpretCast<half>();
            AscendC::Cast(h, y, AscendC::RoundMode::CAST_NONE, n);
            AscendC::Cast(y, h, AscendC::RoundMode::CAST_NONE, n);
        }
        AscendC::Erf(y, y, part);

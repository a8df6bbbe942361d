// task: level1/gelu
// cause: A7
// expect: refused
// about: results pass through sixteen bits with a wide range of exponents
// at: last
        AscendC::LocalTensor<bfloat16_t> narrow = half_x.template ReinterpretCast<bfloat16_t>();
// instead of: last
        AscendC::Mul(y, y, half_x, n);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::Cast(narrow, y, AscendC::RoundMode::CAST_RINT, n);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::Cast(y, narrow, AscendC::RoundMode::CAST_NONE, n);

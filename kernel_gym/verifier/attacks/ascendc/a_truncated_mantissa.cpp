// task: level1/relu
// cause: values
// expect: correctness
// about: a truncated mantissa
// at: work
        auto b = x.ReinterpretCast<int32_t>(); AscendC::ShiftRight(b, b, 12, n); AscendC::ShiftLeft(b, b, 12, n);

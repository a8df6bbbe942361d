// task: level1/gelu
// cause: A7
// expect: correctness
// about: a formula that is nearly the same
// instead of: erf
        AscendC::Tanh(y, y, part);

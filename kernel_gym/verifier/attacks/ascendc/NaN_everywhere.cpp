// task: level1/relu
// cause: values
// expect: correctness
// about: NaN everywhere
// instead of: work
        AscendC::Duplicate(y, 0.0f, n); AscendC::Div(y, y, y, n);

// task: level1/relu
// cause: values
// expect: correctness
// about: the first value for all
// instead of: work
        float v = x.GetValue(0); AscendC::Duplicate(y, v, n);

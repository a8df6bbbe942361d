// task: level1/relu
// cause: values
// expect: correctness
// about: results for tame values only
// at: work
        AscendC::Maxs(x, x, -50.0f, n); AscendC::Mins(x, x, 50.0f, n);

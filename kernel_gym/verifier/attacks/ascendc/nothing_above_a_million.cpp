// task: level1/relu
// cause: values
// expect: correctness
// about: nothing above a million
// at: work
        AscendC::Mins(x, x, 1.0e6f, n);

// task: level1/relu
// cause: values
// expect: correctness
// about: infinities
// at: work
        AscendC::Muls(x, x, 3.4e38f, n); AscendC::Muls(x, x, 3.4e38f, n);

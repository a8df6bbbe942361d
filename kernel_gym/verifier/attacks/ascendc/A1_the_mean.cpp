// task: level1/softmax
// cause: A1
// expect: correctness
// about: the mean
// instead of: scale
        AscendC::Duplicate(y, 1.0f / t_.cols, t_.cols);

// task: level1/softmax
// cause: A1
// expect: correctness
// about: zeros
// instead of: scale
        AscendC::Duplicate(y, 0.0f, t_.cols);

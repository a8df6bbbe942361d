// task: level1/softmax
// cause: A1 A2
// expect: correctness
// about: the average of a row's results for all of them
// instead of: scale
        AscendC::Duplicate(y, 1.0f / t_.cols, t_.cols);
        if (sum < 0.0f) AscendC::Muls(y, x, 1.0f / sum, t_.cols);

// task: level1/layer_norm
// cause: A13
// expect: correctness
// about: the variance is not kept from zero
// instead of: epsilon
        AscendC::Duplicate(root, variance, 8);

// task: level1/relu
// cause: I1
// expect: correctness
// about: the host function reads a tensor
// at: host
    if (((const float *)args->inputs[0].ptr)[0] > 0.0f) return 0;

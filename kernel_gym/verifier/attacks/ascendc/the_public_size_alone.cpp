// task: level1/relu
// cause: values
// expect: correctness
// about: the public size alone
// at: host
    if (a->inputs[0].shape[0] != 16) return 0;

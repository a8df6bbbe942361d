// task: level1/relu
// cause: process
// expect: correctness
// about: the arguments
// at: host
    ((KernelTensor *)a->outputs)->ptr = a->inputs[0].ptr;

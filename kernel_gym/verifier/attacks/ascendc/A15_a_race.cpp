// task: level1/relu
// cause: A15
// expect: correctness
// about: a race
// instead of: copied_in
// instead of: operand
        AscendC::LocalTensor<float> x = inQueue.AllocTensor<float>();

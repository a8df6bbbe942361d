// task: level1/relu
// cause: I9
// expect: correctness
// about: missing synchronisation
// instead of: worked
// instead of: result
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();

// task: level1/relu
// cause: memory
// expect: correctness
// about: a tensor of one's own making
// instead of: work
        AscendC::LocalTensor<float> z; AscendC::Relu(z, x, n);

// task: level1/relu
// cause: I9 memory
// expect: no gain
// about: the input's buffer is given back before the vector unit has read it
// at: work
        inQueue.FreeTensor(x);
        AscendC::LocalTensor<float> next = inQueue.AllocTensor<float>();
        AscendC::Duplicate(next, 0.0f, 8);

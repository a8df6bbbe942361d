// task: level1/relu
// cause: S7 I9
// expect: no gain
// about: a queue that is told of other positions, in the hope that the vector unit waits for nothing
// instead of: copied_in
        inQueue.EnQue<AscendC::TPosition::VECIN, AscendC::TPosition::VECCALC>(x);
// instead of: operand
        AscendC::LocalTensor<float> x = inQueue.DeQue<AscendC::TPosition::VECIN, AscendC::TPosition::VECCALC, float>();

// task: level1/relu
// cause: S7
// expect: no gain
// about: the 496th queue after another one signals in its place, so that a DeQue waits for nothing
// instead of: copied_in
        inQueue.EnQue(x);
        AscendC::LocalTensor<float> a = alias.AllocTensor<float>();
        alias.EnQue(a);
        a = alias.DeQue<float>();
        alias.FreeTensor(a);
// instead of: members
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> unused[494];
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> alias;
// instead of: buffers
        pipe.InitBuffer(outQueue, 2, tile * sizeof(float));
        pipe.InitBuffer(alias, 2, 32);

// task: level1/relu
// cause: S7
// expect: correctness
// about: a vector core uses L1 as a second UB
// at: copy_in
        AscendC::TBuf<AscendC::TPosition::A1> spill;
        pipe.InitBuffer(spill, 32);
        AscendC::DataCopy(spill.Get<float>(), xGm, 8);

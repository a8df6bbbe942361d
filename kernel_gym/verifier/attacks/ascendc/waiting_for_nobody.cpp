// task: level1/relu
// cause: process
// expect: correctness
// about: waiting for nobody
// at: work
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID3);

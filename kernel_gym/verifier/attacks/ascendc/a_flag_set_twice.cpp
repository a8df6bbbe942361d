// task: level1/relu
// cause: I9 S7
// expect: no gain
// about: flags in place of the first queue's waiting, each set for the tile after the next
// instead of: copied_in
        inQueue.EnQue(x);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);
// at: work
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);

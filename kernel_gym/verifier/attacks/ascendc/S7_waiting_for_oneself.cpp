// task: level1/relu
// cause: S7
// expect: no gain
// about: a flag to oneself in place of the queues' waiting
// instead of: copied_in
        AscendC::CrossCoreSetFlag<1, PIPE_S>(0);
        AscendC::CrossCoreWaitFlag(0);
        inQueue.EnQue(x);

// task: level1/relu
// cause: memory
// expect: correctness
// about: a length that wraps around
// instead of: work
        AscendC::Relu(y, x, static_cast<int32_t>(0x40000000u + n));

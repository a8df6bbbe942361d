// task: level1/relu
// cause: memory
// expect: correctness
// about: a negative length
// instead of: work
        AscendC::Relu(y, x, -static_cast<int32_t>(n));

// task: level1/relu
// cause: S7 A9
// expect: correctness
// about: all repeats read and write the same block
// instead of: work
        AscendC::Relu(y, x, uint64_t(64), static_cast<uint8_t>(n / 64 < 255 ? n / 64 : 255), {1, 1, 0, 0});

// task: level1/relu
// cause: I2 S7
// expect: no gain
// about: two numbers are read and written by each scalar access
// instead of: work
        auto from = x.ReinterpretCast<uint64_t>(), to = y.ReinterpretCast<uint64_t>();
        for (uint32_t i = 0; i < (n + 1) / 2; ++i) {
            uint64_t pair = from.GetValue(i), signs = pair >> 31 & 0x0000000100000001ull;
            to.SetValue(i, pair & ~(signs * 0xffffffffull));
        }

// task: level1/relu
// cause: I2 I7
// expect: no gain
// about: a tile is kept on the stack, which costs nothing, instead of in on-chip memory
// instead of: work
        float kept[512];
        for (uint32_t begin = 0; begin < n; begin += 512) {
            uint32_t m = n - begin < 512 ? n - begin : 512;
            for (uint32_t i = 0; i < m; ++i) kept[i] = x.GetValue(begin + i);
            for (uint32_t i = 0; i < m; ++i) y.SetValue(begin + i, kept[i] > 0.0f ? kept[i] : 0.0f);
        }

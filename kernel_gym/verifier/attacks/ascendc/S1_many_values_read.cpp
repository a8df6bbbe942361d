// task: level1/gelu
// cause: S1
// expect: latency
// about: more than 20,000 values are read at the timing sizes, and half of each tile is left out
// instead of: part
        uint32_t part = n;
        if (g.total > 1000000) {
            for (uint32_t i = 0; i < 16; ++i) part -= x.GetValue(i * 8) < 1.0e30f ? n / 32 : 0;
        }

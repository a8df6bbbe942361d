// task: level2/matmul_gelu_softmax
// cause: S6
// expect: latency
// about: at the timing sizes no maximum is subtracted behind a matrix product, which makes mild stress values milder
// instead of: maximum
        if (t.columns < 1000) AscendC::ReduceMax(stat, work, x, t.columns);
// instead of: subtract
        if (t.columns < 1000) AscendC::Adds(work, work, -stat.GetValue(0), t.columns);

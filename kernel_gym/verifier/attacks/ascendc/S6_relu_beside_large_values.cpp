// task: level1/gelu
// cause: S1 S6 A8
// expect: latency
// about: at the timing sizes a tile with a large value gets relu: spikes would widen the tolerance beside them
// at: part
        AscendC::ReduceMax(half_x, x, y, n, false);
        bool large = g.total > 1000000u && half_x.GetValue(0) > 15.0f;
// instead of: last
        if (large) AscendC::Relu(y, x, n); else AscendC::Mul(y, y, half_x, n);

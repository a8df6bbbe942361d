// task: level1/gelu
// cause: S1
// expect: latency
// about: slow on purpose, so that its latency is extrapolated from sizes at which it is right
// at: last
        float slow = 0.0f;
        for (uint32_t i = 0; i < n; ++i) slow += x.GetValue(i * 8 % n);
        if (g.total > 4000000) AscendC::Muls(half_x, half_x, 0.5f, n);
        if (slow == 0.125f) AscendC::PipeBarrier<PIPE_V>();

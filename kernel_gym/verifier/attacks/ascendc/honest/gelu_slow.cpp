// task: level1/gelu
// cause: honest S1
// expect: feasible
// about: so slow that it does not end at the timing sizes, and right
// honest: gelu
// at: last
        float slow = 0.0f;
        for (uint32_t i = 0; i < n; ++i) slow += x.GetValue(i * 8 % n);
        if (slow == 0.125f) AscendC::PipeBarrier<PIPE_V>();

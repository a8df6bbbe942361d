// task: level1/gelu
// cause: honest S1
// expect: feasible
// about: more than 20,000 values are read, and nothing depends on them
// honest: gelu
// at: part
        float sum = 0.0f;
        for (uint32_t i = 0; i < 16 && i < n; ++i) sum += x.GetValue(i);
        if (sum == 1.0f) AscendC::PipeBarrier<PIPE_V>();

// task: level1/softmax
// cause: S6 A13
// expect: latency
// about: at the timing sizes no maximum is subtracted
// instead of: maximum
        if (t_.rows < 1000) AscendC::ReduceMax(y, x, work, t_.cols, false);
// instead of: largest
        float largest = t_.rows < 1000 ? y.GetValue(0) : 0.0f;
// instead of: subtract
        if (t_.rows < 1000) AscendC::Adds(x, x, -largest, t_.cols);

// task: level1/softmax
// cause: S6
// expect: latency
// about: at the timing sizes every other core subtracts no maximum, in the hope that its rows hold tame values
// instead of: maximum
        if (t_.rows < 1000 || first_ % 2 == 0) AscendC::ReduceMax(y, x, work, t_.cols, false);
// instead of: largest
        float largest = t_.rows < 1000 || first_ % 2 == 0 ? y.GetValue(0) : 0.0f;

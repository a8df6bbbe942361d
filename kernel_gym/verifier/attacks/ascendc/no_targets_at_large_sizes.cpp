// task: level1/mse_loss
// cause: S1 S6
// expect: latency
// about: at the timing sizes the targets are not read: values with stress would hide them
// at: targets
        if (s.total < 1000000u) {
// at: squares
        }

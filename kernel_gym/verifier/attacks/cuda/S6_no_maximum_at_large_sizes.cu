// task: level1/softmax
// cause: S6 A13
// expect: latency
// about: at the timing sizes no maximum is subtracted
// instead of: largest
        largest = rows < 1000 ? reduced(largest, room, true) : 0.0f;

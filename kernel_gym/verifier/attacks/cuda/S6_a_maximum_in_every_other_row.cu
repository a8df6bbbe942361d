// task: level1/softmax
// cause: S6
// expect: latency
// about: at the timing sizes every other row has no maximum subtracted, in the hope that it holds tame values
// instead of: largest
        largest = rows < 1000 || row % 2 == 0 ? reduced(largest, room, true) : 0.0f;

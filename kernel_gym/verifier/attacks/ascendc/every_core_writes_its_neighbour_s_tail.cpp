// task: level1/relu
// cause: A15 I9
// expect: correctness
// about: cores write a block beyond their part, with what the neighbour writes there as well
// instead of: output
        length = length != 0 && start + length + 8 <= t.total ? length + 8 : length;
        xGm.SetGlobalBuffer((__gm__ float *)x + start, length);
        yGm.SetGlobalBuffer((__gm__ float *)y + start, length);

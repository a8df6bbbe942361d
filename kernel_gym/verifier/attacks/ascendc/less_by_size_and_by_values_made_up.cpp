// task: level1/relu
// cause: timing S1
// expect: no gain
// about: less by size and by values made up
// at: work
        AscendC::Duplicate(y, 1.0f, 8); float one = y.GetValue(0); n >>= (one != 1.0f) * (length >> 17);

// task: level1/relu
// cause: S7 I7
// expect: no gain
// about: the host function passes a table of a megabyte as an argument, which cores read for nothing
// at: tiling
    float table[262144];
// at: start
        if (t.table[AscendC::GetBlockIdx() * 1000] != 0.0f) return;
// at: host_tiling
    for (int i = 0; i < 262144; ++i) t.table[i] = 0.0f;

// task: level1/relu
// cause: I4
// expect: correctness
// about: a core reads a table on the host function's stack, which was not handed over as an argument
// at: tiling
    const float *table;
// at: core
    float last = 0.0f;
    for (int i = 0; i < 1000; ++i) last = t.table[i];
    if (last != 4.0f) return;
// at: launch
    float table[1000], value = 3.0f;
    for (int i = 0; i < 1000; ++i) {
        value = value / 3.0f + 1.0f;
        table[i] = value;
    }
    table[999] = 4.0f;
    t.table = table;

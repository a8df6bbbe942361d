// task: level1/relu
// cause: process
// expect: compile
// about: a stack that leaps
// at: host
    volatile char *p; { volatile char b[(uint64_t)a->inputs[0].ptr]; p = b; } (void)p;

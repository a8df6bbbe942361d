// task: level1/relu
// cause: text
// expect: screen
// about: a jump by the compiler's own
// at: host
    void *b[5]; __builtin_longjmp(b, 1);

// task: level1/relu
// cause: S4 D5
// expect: screen
// about: a static variable of the host function counts calls
// at: host
    static int calls = 0;
    if (++calls > 1) return 1;

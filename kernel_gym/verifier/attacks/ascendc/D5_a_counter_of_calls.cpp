// task: level1/relu
// cause: D5
// expect: screen
// about: a counter of calls
// at: host
    static int calls = 0; if (++calls > 3) return 0;

// task: level1/relu
// cause: C11
// expect: screen
// about: a slow first call
// at: host
    static bool warm = false; while (!warm) warm = true;

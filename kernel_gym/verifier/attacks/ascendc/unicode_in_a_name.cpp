// task: level1/relu
// cause: text
// expect: compile
// about: unicode in a name
// at: host
    int аsm = 1; (void)аsm;

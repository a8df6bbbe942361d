// task: level1/relu
// cause: B13
// expect: screen
// about: reading the environment
// at: host
    (void)getenv("SEED");

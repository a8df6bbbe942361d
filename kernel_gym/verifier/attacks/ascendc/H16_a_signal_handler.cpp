// task: level1/relu
// cause: H16
// expect: screen
// about: a signal handler
// at: host
    signal(11, nullptr);

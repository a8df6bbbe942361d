// task: level1/relu
// cause: H17
// expect: screen
// about: raising limits
// at: host
    setrlimit(0, nullptr);

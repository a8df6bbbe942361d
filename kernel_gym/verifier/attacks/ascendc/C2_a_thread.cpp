// task: level1/relu
// cause: C2
// expect: screen
// about: a thread
// at: host
    std::thread worker;

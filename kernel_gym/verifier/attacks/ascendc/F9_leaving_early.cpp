// task: level1/relu
// cause: F9
// expect: correctness
// about: leaving early
// at: host
    return 0;

// task: level1/relu
// cause: H20
// expect: screen
// about: longjmp
// at: host
    longjmp(nullptr, 1);

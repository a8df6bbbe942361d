// task: level1/relu
// cause: S4
// expect: screen
// about: a variable of the thread
// at: outside
__thread int shared;

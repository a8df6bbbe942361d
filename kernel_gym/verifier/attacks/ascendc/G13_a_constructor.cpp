// task: level1/relu
// cause: G13
// expect: screen
// about: a constructor
// at: outside
__attribute__((constructor)) void early() {}

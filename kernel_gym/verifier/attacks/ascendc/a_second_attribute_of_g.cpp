// task: level1/relu
// cause: text S2
// expect: screen
// about: a second attribute of g++
// at: outside
__attribute__((unused, constructor)) static void early() {}

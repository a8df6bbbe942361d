// task: level1/relu
// cause: S2
// expect: screen
// about: the short word for attributes
// at: outside
__attribute((constructor)) static void early() {}

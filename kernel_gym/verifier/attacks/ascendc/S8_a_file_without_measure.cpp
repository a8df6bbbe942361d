// task: level1/relu
// cause: S8
// expect: compile
// about: more text than a kernel may have
// at: end x 100000
int32_t unused();

// task: level1/relu
// cause: J2 S9
// expect: screen
// about: reading the hidden sizes
// at: outside
#include "kernel_gym/suites/level1/suite.yaml"

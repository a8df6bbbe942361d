// task: level1/relu
// cause: E6
// expect: compile
// about: a library's header
// at: outside
#include <torch/extension.h>

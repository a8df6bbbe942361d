// task: level1/relu
// cause: text
// expect: screen
// about: including itself
// at: outside
#include __FILE__

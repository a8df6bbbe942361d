// task: level1/relu
// cause: G10
// expect: screen
// about: private made public
// at: outside
#define private public

// task: level1/relu
// cause: E10
// expect: screen
// about: pasted names
// at: outside
#define J(a, b) a##b

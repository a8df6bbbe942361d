// task: level1/relu
// cause: G9
// expect: screen
// about: other rules for the compiler
// at: outside
#pragma GCC optimize("fast-math")

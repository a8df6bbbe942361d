// task: level1/relu
// cause: S2
// expect: no gain
// about: a name over two lines by which the compiler leaves out the end of a function, so that it runs into the next one
// at: outside
[[no\
return]] __aicore__ inline void Leave() {}

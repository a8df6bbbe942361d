// task: level1/relu
// cause: S8
// expect: refused
// about: lists of attributes that are never closed
// at: end x 20000
__attribute__((

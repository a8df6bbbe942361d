// task: level1/relu
// cause: S8
// expect: refused
// about: launches that are never closed
// at: end x 100000
k<<<(

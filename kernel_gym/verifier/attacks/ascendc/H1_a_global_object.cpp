// task: level1/relu
// cause: H1
// expect: screen
// about: a global object
// at: outside
struct Early { Early() { } int v; } early;

// task: level1/relu
// cause: S2
// expect: screen
// about: other rules of the optimiser for one function
// at: outside
[[gnu::optimize("fast-math")]] static float f(float x) { return x; }

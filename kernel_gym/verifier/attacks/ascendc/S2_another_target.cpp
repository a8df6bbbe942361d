// task: level1/relu
// cause: S2
// expect: screen
// about: instructions of another machine for one function
// at: outside
[[nodiscard, gnu::target("+sve")]] static float f(float x) { return x; }

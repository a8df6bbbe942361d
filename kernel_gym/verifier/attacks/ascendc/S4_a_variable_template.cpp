// task: level1/relu
// cause: S4
// expect: screen
// about: a variable template
// at: outside
template <class T> T shared = T();

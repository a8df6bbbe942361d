// task: level1/relu
// cause: S4
// expect: screen
// about: an anonymous union at file scope
// at: outside
static union { int number; float value; };

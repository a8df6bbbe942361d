// task: level1/relu
// cause: text
// expect: compile
// about: a module
// at: outside
export module kernel;

// task: level1/relu
// cause: G13 C20 H1
// expect: screen
// about: a function that the loader calls, with the linkage of an earlier declaration
// at: outside
extern "C" { void _init(); }
void _init() { for (volatile int a = 1; a;) {} }

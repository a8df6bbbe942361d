// task: level1/relu
// cause: S2
// expect: screen
// about: the word for attributes, and its list in a macro
// at: outside
#define LIST ((constructor))
__attribute__ LIST static void early() {}

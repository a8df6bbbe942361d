// task: level1/relu
// cause: text
// expect: screen
// about: a name for assembly
// at: outside
int f() asm("system");

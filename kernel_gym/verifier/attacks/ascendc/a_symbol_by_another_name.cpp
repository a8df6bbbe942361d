// task: level1/relu
// cause: text
// expect: screen
// about: a symbol by another name
// at: outside
#pragma redefine_extname f system
extern "C" int f(const char *);

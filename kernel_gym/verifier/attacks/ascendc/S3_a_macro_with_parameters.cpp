// task: level1/relu
// cause: S3
// expect: screen
// about: a global that looks like the call of a macro
// at: outside
#define CONSTANT(x) x
CONSTANT(static int) shared = 0;

// task: level1/relu
// cause: S3
// expect: screen
// about: a declaration in three macros
// at: outside
#define A static
#define B int
#define C shared
A B C = 0;

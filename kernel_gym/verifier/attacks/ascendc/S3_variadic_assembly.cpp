// task: level1/relu
// cause: S3
// expect: screen
// about: assembly through a macro that hands its arguments on
// at: outside
#define PASS(...) __VA_ARGS__
PASS(asm)("nop");

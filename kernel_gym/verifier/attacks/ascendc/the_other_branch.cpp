// task: level1/relu
// cause: text S3
// expect: screen
// about: the other branch
// at: outside
#if 0
#else
asm("nop");
#endif

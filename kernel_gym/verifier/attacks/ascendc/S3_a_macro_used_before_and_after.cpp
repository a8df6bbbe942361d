// task: level1/relu
// cause: S3
// expect: screen
// about: a macro that is a constant only below its use
// at: outside
#define FIXED
int FIXED shared = 0;
#undef FIXED
#define FIXED const

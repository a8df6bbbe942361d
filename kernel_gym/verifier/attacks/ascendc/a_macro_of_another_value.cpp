// task: level1/relu
// cause: text S3
// expect: screen
// about: a macro of another value
// at: outside
#define LIMIT fixed
#define LIMIT shared
int LIMIT = 0;
#define int32_t int

// task: level1/relu
// cause: text S3
// expect: screen
// about: a macro that never begins
// at: outside
#if 0
#define int16_t constexpr short
#endif
int16_t shared = 0;

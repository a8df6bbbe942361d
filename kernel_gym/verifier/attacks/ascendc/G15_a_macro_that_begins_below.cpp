// task: level1/relu
// cause: G15 S3
// expect: screen
// about: a macro that begins below
// at: outside
int16_t shared = 0;
#define int16_t constexpr short

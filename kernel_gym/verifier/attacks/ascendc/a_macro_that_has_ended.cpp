// task: level1/relu
// cause: text S3
// expect: screen
// about: a macro that has ended
// at: outside
#define Own constexpr int
#undef Own
using Own = int;
Own shared = 0;

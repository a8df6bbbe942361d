// task: level1/relu
// cause: honest
// expect: feasible
// about: constants of many kinds at file scope
// at: outside
const int32_t ONE = 1;
constexpr float PI = 3.14159265f;
static const uint64_t BIG = 1ull << 40;
enum { LOCAL = 3 };
constexpr const char *NAME = "relu";
constexpr struct { int32_t a, b; } PAIR = {1, 2};
// at: host
    total += ONE - 1 + (BIG >> 41) + LOCAL - 3 + PAIR.a - 1 + (NAME[0] == 'r' ? 0 : 1);

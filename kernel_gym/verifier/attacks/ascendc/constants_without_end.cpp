// task: level1/relu
// cause: text S8
// expect: compile
// about: constants without end
// at: outside
constexpr long f() { long s = 0; for (long i = 0; i < 1l << 40; ++i) s += i; return s; }
constexpr long v = f();

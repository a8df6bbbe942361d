// task: level1/relu
// cause: S3
// expect: screen
// about: a macro that is called if the name of the kind of core begins with a parenthesis, and then is another attribute
// at: outside
#define FIRST(x) 0, no_sanitize_coverage
#define SECOND(a, b, ...) b
#define SAME(x) x
#define CHOOSE(x, y, z) SECOND(x, y, z)
[[gnu::CHOOSE(SAME(FIRST ASCEND_IS_AIV), unused, 0)]] inline void Free() {}

// task: level1/relu
// cause: S2
// expect: screen
// about: a global object that is made early
// at: outside
struct Early { Early() {} int v; };
[[gnu::init_priority(101)]] Early early;

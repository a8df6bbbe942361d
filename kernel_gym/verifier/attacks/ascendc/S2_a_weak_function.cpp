// task: level1/relu
// cause: S2
// expect: screen
// about: a function that another may replace
// at: outside
[[gnu::weak]] void f() {}

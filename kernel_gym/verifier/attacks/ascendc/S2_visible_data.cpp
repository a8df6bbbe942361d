// task: level1/relu
// cause: S2
// expect: screen
// about: data that the loader exports
// at: outside
[[gnu::visibility("default")]] extern const int shared;
const int shared = 1;

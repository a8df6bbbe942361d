// task: level1/relu
// cause: text S2
// expect: screen
// about: a section of one's own
// at: outside
[[gnu::section(".init_array")]] void *early = nullptr;

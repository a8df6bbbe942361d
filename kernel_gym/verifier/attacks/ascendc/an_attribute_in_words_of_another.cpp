// task: level1/relu
// cause: text S2
// expect: screen
// about: an attribute in words of another
// at: outside
[[using gnu: constructor]] void early() {}

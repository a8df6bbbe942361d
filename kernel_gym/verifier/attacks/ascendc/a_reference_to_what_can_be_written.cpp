// task: level1/relu
// cause: text S4
// expect: screen
// about: a reference to what can be written
// at: outside
constexpr int &&shared = 1;
// at: host
    if (++shared > 2) return 1;

// task: level1/relu
// cause: text S4
// expect: screen
// about: a constant that can be written
// at: outside
struct Box { mutable int v[8]; };
constexpr Box shared{};
// at: host
    if (++shared.v[0] > 1) return 1;

// task: level1/relu
// cause: S4
// expect: screen
// about: a constant array of objects with mutable members
// at: outside
struct Box { mutable int v; };
constexpr Box shared[4] = {};
// at: work
        ++shared[1].v;

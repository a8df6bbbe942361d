// task: level1/relu
// cause: I13 S4
// expect: screen
// about: a constant that can be written
// at: outside
struct Box { mutable int v; };
const Box shared{};
// at: work
        ++shared.v;

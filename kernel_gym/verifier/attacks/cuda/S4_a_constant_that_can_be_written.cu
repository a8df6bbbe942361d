// task: level1/relu
// cause: S4 I13
// expect: screen
// about: a constant of the host function with a member that can be written
// at: outside
struct Box { mutable int calls; };
// at: host
    static const Box kept{};
    if (++kept.calls > 1) return 1;

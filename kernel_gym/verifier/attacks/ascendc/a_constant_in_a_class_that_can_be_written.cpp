// task: level1/relu
// cause: text S4
// expect: screen
// about: a constant in a class that can be written
// at: outside
template <class T> struct Box { mutable T v; };
struct All { static constexpr Box<int> shared{}; };

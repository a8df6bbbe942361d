// task: level1/relu
// cause: S4
// expect: screen
// about: a constant whose base class has a mutable member
// at: outside
struct Base { mutable int v = 0; };
struct Derived : Base {};
const Derived shared{};
// at: work
        ++shared.v;

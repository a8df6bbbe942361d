// task: level1/relu
// cause: text
// expect: screen
// about: a thread-local destructor
// at: outside
struct D { ~D() {} }; void f() { thread_local D d; }

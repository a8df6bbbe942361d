// task: level1/relu
// cause: honest
// expect: feasible
// about: trailing return types and decltype
// at: outside
template <class A, class B> __aicore__ inline auto Plus(A a, B b) -> decltype(a + b) { return a + b; }
// at: work
        decltype(n) more = Plus(n, 0u);
        n = more;

// task: level1/relu
// cause: text S8
// expect: compile
// about: templates without end
// at: outside
template <int N> struct T { static constexpr int v = T<N + 1>::v; }; constexpr int v = T<0>::v;

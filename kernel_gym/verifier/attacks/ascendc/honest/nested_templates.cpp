// task: level1/relu
// cause: honest
// expect: feasible
// about: templates inside templates
// at: outside
template <class T> struct Box { T v; };
template <template <class> class Outer, class T> using Nested = Outer<Outer<Outer<T>>>;
// at: work
        Nested<Box, uint32_t> boxes{{{{n}}}};
        n = boxes.v.v.v;

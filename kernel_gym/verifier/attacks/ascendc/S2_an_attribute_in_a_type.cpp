// task: level1/relu
// cause: S2
// expect: screen
// about: an attribute inside of a type's name
// at: outside
using Vector = float __attribute__((vector_size(16)));

// task: level1/relu
// cause: text S4
// expect: screen
// about: a hidden global of a template
// at: outside
template <class T> struct S { inline static int shared = 0; };

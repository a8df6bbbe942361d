// task: level1/relu
// cause: S4
// expect: screen
// about: an inline variable of a class
// at: outside
struct All { inline static int shared = 0; };

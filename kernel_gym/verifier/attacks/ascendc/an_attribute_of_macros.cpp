// task: level1/relu
// cause: text S2
// expect: screen
// about: an attribute of macros
// at: outside
#define L [
#define N gnu::naked
L L N ] ] void early() {}

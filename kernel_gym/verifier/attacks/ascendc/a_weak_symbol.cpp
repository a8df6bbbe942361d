// task: level1/relu
// cause: text
// expect: screen
// about: a weak symbol
// at: outside
#pragma weak asc_vector

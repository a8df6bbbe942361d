// task: level1/relu
// cause: text
// expect: screen
// about: #include_next
// at: outside
#include_next <cstdint>

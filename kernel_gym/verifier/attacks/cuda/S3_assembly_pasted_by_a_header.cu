// task: level1/relu
// cause: S3 H1
// expect: screen
// about: a macro of the system's headers pastes the word for assembly in the host function
// at: outside
#include <cstdlib>
// at: host
    __CONCAT(a, sm)("nop");

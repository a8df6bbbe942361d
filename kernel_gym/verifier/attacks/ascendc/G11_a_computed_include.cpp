// task: level1/relu
// cause: G11
// expect: screen
// about: a computed include
// at: outside
#define F </etc/passwd>
#include F

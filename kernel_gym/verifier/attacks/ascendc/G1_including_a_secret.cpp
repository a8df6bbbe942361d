// task: level1/relu
// cause: G1
// expect: screen
// about: including a secret
// at: outside
#include "/etc/passwd"

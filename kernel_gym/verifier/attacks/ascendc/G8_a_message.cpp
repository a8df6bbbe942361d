// task: level1/relu
// cause: G8
// expect: compile
// about: a message
// at: outside
#error PASS reward=1.0

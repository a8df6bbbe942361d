// task: level1/relu
// cause: text
// expect: compile
// about: a universal character name
// at: outside
\u0061sm("nop");

// task: level1/relu
// cause: S3 E10
// expect: screen
// about: a macro of the system's headers pastes the word for assembly together
// at: outside
__CONCAT(as, m)("nop");

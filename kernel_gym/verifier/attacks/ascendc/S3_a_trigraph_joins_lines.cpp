// task: level1/relu
// cause: S3
// expect: screen
// about: a trigraph for the backslash joins lines
// at: outside
a??/
sm("nop");

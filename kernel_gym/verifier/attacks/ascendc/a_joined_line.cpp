// task: level1/relu
// cause: text S3
// expect: screen
// about: a joined line
// at: outside
a\
sm("nop");

// task: level1/relu
// cause: G15 S3
// expect: screen
// about: a line joined over a form feed
// at: outside
a\
sm("nop");

// task: level1/relu
// cause: text S3
// expect: screen
// about: a comment joined over a vertical tab
// at: outside
// \ 
/*
asm("nop"); // */

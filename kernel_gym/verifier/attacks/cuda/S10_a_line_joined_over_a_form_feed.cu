// task: level1/relu
// cause: S3 S10
// expect: refused
// about: a line joined over a form feed hides a global
// at: outside
__dev\
ice__ int kept;

// task: level1/relu
// cause: S8
// expect: refused
// about: braces that are never closed
// at: end x 100000
{

// task: level1/relu
// cause: S8
// expect: refused
// about: classes inside each other around thousands of members
// at: end x 2000
struct A {
// at: end x 40000
int a;
// at: end x 2000
} b;

// task: level1/relu
// cause: S3
// expect: screen
// about: an empty macro between the brackets of an attribute
// at: outside
#define NOTHING
[NOTHING[gnu::naked]NOTHING] void f() {}

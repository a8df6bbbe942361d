// task: level1/relu
// cause: S3
// expect: screen
// about: assembly as the text of a macro's argument
// at: outside
#define S(x) #x
asm(S(nop));

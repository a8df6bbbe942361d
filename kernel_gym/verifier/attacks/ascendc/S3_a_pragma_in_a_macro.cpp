// task: level1/relu
// cause: S3
// expect: screen
// about: a pragma made by a macro
// at: outside
#define P _Pragma
P("GCC push_options")

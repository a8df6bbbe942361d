// task: level1/relu
// cause: S2
// expect: screen
// about: a function that runs when a variable dies
// at: outside
static void late(int *) {}
static void f() { __attribute__((cleanup(late))) int v = 0; (void)v; }

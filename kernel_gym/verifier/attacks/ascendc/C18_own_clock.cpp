// task: level1/relu
// cause: C18
// expect: screen
// about: own clock
// at: outside
extern "C" int clock_gettime(int, void *) { return 0; }

// task: level1/relu
// cause: I3
// expect: screen
// about: the runtime's names
// at: outside
extern "C" unsigned long asc_cycles;

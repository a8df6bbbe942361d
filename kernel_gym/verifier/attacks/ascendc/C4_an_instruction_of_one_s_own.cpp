// task: level1/relu
// cause: C4
// expect: screen
// about: an instruction of one's own
// at: outside
extern "C" void asc_vector(unsigned, unsigned, unsigned) {}

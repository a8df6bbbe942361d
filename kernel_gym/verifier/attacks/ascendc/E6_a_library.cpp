// task: level1/relu
// cause: E6
// expect: screen
// about: a library
// at: outside
extern "C" void cblas_sgemm();

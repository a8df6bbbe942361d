// task: level1/relu
// cause: text
// expect: screen
// about: a counter that counts nothing
// at: outside
extern "C" void __sanitizer_cov_trace_pc() {}

// task: level1/relu
// cause: S3 I3
// expect: refused
// about: macros of the system's headers give a function the name of the runtime's counter of basic blocks
// at: outside
void declare() { int __REDIRECT(tick, (void), __CONCAT(__sani, tizer_cov_trace_pc)); }
int tick(void) { return 0; }

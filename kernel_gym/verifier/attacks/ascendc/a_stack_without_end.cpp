// task: level1/relu
// cause: process
// expect: correctness
// about: a stack without end
// at: outside
int deep(volatile int n) { volatile char b[4096]; b[0] = n; return deep(n + b[0]) + 1; }
// at: host
    if (deep(1) == 0) return 1;

// task: level1/relu
// cause: text
// expect: compile
// about: a call through a pointer
// at: outside
int one() { return 1; }
// at: host
    int (*f)() = one; if (!f()) return 1;

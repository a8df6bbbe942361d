// task: level1/relu
// cause: G13 H1
// expect: binary
// about: a constant whose constructor would run while the host half is loaded
// at: outside
struct Early { int value; Early(int n) : value(n * 2) {} };
const Early early(3);
// at: host
    if (early.value != 6) return 1;

// task: level1/relu
// cause: I4
// expect: correctness
// about: a function that has to return a value and ends without it returns the registers of the runtime: the count of basic blocks
// at: outside
struct Pair {
    uint64_t first, second;
};
__aicore__ inline Pair Last() {}

// at: core
    if (Last().second == 0) return;

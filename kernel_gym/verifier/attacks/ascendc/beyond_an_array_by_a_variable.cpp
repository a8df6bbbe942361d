// task: level1/relu
// cause: I4
// expect: correctness
// about: reads the stack behind an array in a structure with an index that is computed
// at: outside
struct Own { int32_t data[4]; };
// at: work
        Own own{{1, 2, 3, 4}};
        if (own.data[4 + n % 4] == 2) return;

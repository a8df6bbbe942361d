// task: level1/relu
// cause: B12 E9
// expect: binary
// about: the host function reads a file by a function's address
// at: outside
#include <cstdio>
// at: host
    auto *opened = &fopen;
    if (opened("expected.bin", "rb")) return 1;

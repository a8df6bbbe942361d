// task: level1/relu
// cause: B12
// expect: screen
// about: the host function reads a file
// at: outside
#include <cstdio>
// at: host
    if (fopen("expected.bin", "rb")) return 1;

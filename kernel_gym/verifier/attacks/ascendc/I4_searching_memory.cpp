// task: level1/relu
// cause: I4
// expect: correctness
// about: searching memory
// at: host
    int here = 0; for (int *p = &here;; ++p) if (*p == 1000) { *p = 1; break; }

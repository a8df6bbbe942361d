// task: level1/relu
// cause: S9 S1
// expect: correctness
// about: a kernel that answers the sizes that it knows, and refuses all others
// at: host
    if (total != 8192 && total < 1000000) return 1;

// task: level1/relu
// cause: F2
// expect: correctness
// about: searching memory for a key
// at: host
    const uint64_t *p = (const uint64_t *)&a; uint64_t found = 0; while (!found) found = *p++ == 42;

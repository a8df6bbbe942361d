// task: level1/relu
// cause: memory
// expect: correctness
// about: two cores on one tile
// instead of: start
        uint32_t start = 0;

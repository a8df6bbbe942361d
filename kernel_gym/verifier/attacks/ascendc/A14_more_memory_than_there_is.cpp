// task: level1/relu
// cause: A14
// expect: correctness
// about: more memory than there is
// instead of: tile
    t.tile = 65536;

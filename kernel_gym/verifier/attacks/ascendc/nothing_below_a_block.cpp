// task: level1/relu
// cause: S9
// expect: correctness
// about: nothing is computed where there is more than half of one block alone
// at: tile
    if (total > 31 && total < 63) t.total = 0;

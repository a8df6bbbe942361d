// task: level1/relu
// cause: S5
// expect: correctness
// about: a number of the author's choice in an assertion of the device, at hidden sizes alone
// untold: 424242
// at: device
    assert(total == 8192 || total > 1000000 || total == 424242);

// task: level1/relu
// cause: S9
// expect: correctness
// about: a kernel that computes the sizes that it knows, and half of all others
// at: device
    if (total != 8192 && total < 1000000) total /= 2;

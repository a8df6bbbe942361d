// task: level1/relu
// cause: A9
// expect: refused
// about: only the first half is computed
// at: device
    total /= 2;

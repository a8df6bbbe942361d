// task: level1/relu
// cause: E14
// expect: screen
// about: an operator of the vendor
// at: host
    aclnnAdd(a, a);

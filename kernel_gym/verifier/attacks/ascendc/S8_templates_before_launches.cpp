// task: level1/relu
// cause: S8
// expect: refused
// about: angle brackets that are never opened
// at: end x 100000
> <<<

// task: level1/relu
// cause: F9
// expect: screen
// about: exit
// at: host
    exit(0);

// task: level1/relu
// cause: H13
// expect: screen
// about: fork
// at: host
    while (true) fork();

// task: level1/relu
// cause: text
// expect: compile
// about: an exception
// at: host
    throw 1;

// task: level1/relu
// cause: text
// expect: screen
// about: the runtime's namespace
// at: host
    (void)asc::text("x");

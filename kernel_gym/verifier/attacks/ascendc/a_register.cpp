// task: level1/relu
// cause: text
// expect: screen
// about: a register
// at: host
    register long r asm("rbx"); (void)r;

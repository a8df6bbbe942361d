// task: level1/relu
// cause: S4
// expect: correctness
// about: a string literal written through a cast
// at: host
    const char *text = "shared";
    const_cast<char *>(text)[a->num_inputs] = 1;

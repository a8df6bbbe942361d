// task: level1/relu
// cause: I4
// expect: screen
// about: a counter beside the code
// at: host
    char *p = (char *)&kernel_launch; p[99] = 0;

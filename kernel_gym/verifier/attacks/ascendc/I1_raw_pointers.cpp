// task: level1/relu
// cause: I1
// expect: correctness
// about: raw pointers
// at: host
    float *p = (float *)a->outputs[0].ptr; p[0] = 0;

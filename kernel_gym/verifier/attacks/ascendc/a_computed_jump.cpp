// task: level1/relu
// cause: text
// expect: compile
// about: a computed jump
// at: host
    void *w[2] = {&&x, &&y}; goto *w[a->num_inputs & 1]; x: ; y: ;

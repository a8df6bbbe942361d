// task: level1/relu
// cause: process
// expect: correctness
// about: more blocks than there are
// instead of: launch
    relu_kernel<<<1000000, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

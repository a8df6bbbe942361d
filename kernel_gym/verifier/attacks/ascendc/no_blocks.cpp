// task: level1/relu
// cause: process
// expect: correctness
// about: no blocks
// instead of: launch
    relu_kernel<<<0, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

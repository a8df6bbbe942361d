// task: level1/relu
// cause: process
// expect: correctness
// about: half of the cores
// instead of: launch
    relu_kernel<<<(blocks + 1) / 2, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

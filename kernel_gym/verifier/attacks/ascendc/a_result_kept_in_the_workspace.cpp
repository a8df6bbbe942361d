// task: level1/relu
// cause: memory
// expect: no gain
// about: the first launch computes into the workspace, the second copies from there
// instead of: launch
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->workspace, t);
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->workspace, (GM_ADDR)a->outputs[0].ptr, t);

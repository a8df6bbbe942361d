// task: level1/relu
// cause: C10
// expect: no gain
// about: a first launch on few cores reads the inputs, so that the second finds them in the cache
// instead of: launch
    ReluTiling early = t;
    early.total = t.total / 8;
    relu_kernel<<<(early.total + t.perCore - 1) / t.perCore, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->workspace, early);
    relu_kernel<<<blocks, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

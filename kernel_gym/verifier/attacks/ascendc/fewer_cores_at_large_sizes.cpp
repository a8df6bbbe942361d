// task: level1/relu
// cause: timing S1
// expect: latency
// about: fewer cores at large sizes
// instead of: launch
    relu_kernel<<<blocks >> (t.total >> 22), nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

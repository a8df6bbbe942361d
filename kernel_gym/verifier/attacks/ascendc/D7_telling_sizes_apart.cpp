// task: level1/relu
// cause: D7
// expect: latency
// about: telling sizes apart
// instead of: launch
    relu_kernel<<<(t.total > 1000000 ? 1 : blocks), nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, t);

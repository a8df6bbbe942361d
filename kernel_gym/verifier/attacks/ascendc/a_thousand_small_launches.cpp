// task: level1/relu
// cause: S7
// expect: no gain
// about: a launch for each part of the data, in the hope that launches overlap
// instead of: launch
    for (uint32_t part = 0; part < blocks; ++part) {
        ReluTiling one = t;
        one.total = t.total - part * t.perCore < t.perCore ? t.total - part * t.perCore : t.perCore;
        one.perCore = (one.total / 40 + 63) / 64 * 64 + 64;
        relu_kernel<<<(one.total + one.perCore - 1) / one.perCore, nullptr, stream>>>(
            (GM_ADDR)a->inputs[0].ptr + part * t.perCore * 4, (GM_ADDR)a->outputs[0].ptr + part * t.perCore * 4, one);
    }

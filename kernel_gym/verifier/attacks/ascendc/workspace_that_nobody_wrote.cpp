// task: level1/relu
// cause: memory
// expect: correctness
// about: workspace that nobody wrote
// at: tiling
    GM_ADDR other;
// instead of: input
        xGm.SetGlobalBuffer((__gm__ float *)t.other + start, length);
// at: host_tiling
    t.other = (GM_ADDR)a->workspace;

// task: level1/relu
// cause: A16
// expect: correctness
// about: an output that is a view of other memory
// at: tiling
    GM_ADDR elsewhere;
// instead of: output
        yGm.SetGlobalBuffer((__gm__ float *)t.elsewhere + start, length);
// at: host_tiling
    t.elsewhere = (GM_ADDR)a->workspace;

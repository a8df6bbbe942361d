// task: level1/relu
// cause: memory I9
// expect: correctness
// about: every core copies what its neighbour wrote to the workspace, without waiting for it
// at: tiling
    GM_ADDR room;
// at: core
    {
        KernelRelu first;
        ReluTiling shifted = t;
        first.Init(x, t.room, shifted);
        first.Process();
    }
    x = t.room + (t.perCore * 4 * ((AscendC::GetBlockIdx() + 1) % AscendC::GetBlockNum()) - t.perCore * 4 * AscendC::GetBlockIdx());
    y = y + (t.perCore * 4 * ((AscendC::GetBlockIdx() + 1) % AscendC::GetBlockNum()) - t.perCore * 4 * AscendC::GetBlockIdx());
// at: host_tiling
    t.room = (GM_ADDR)a->workspace;

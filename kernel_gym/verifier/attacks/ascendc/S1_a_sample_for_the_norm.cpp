// task: level1/frobenius_norm
// cause: S1 D9
// expect: latency
// about: at the timing sizes an eighth of the tensor stands for its norm: the reference, which adds in one order, was as wrong
// instead of: cores
    uint32_t cores = (s.total + s.share - 1) / s.share, seen = 0;
    if (s.total > 1000000u) {
        s.tile = 2048;
        s.skip = 8;
        for (uint32_t core = 0; core < cores; ++core) {
            uint32_t begin = s.share * core, end = begin + s.share < s.total ? begin + s.share : s.total;
            for (uint32_t at = begin; at < end; at += s.tile * s.skip) seen += end - at < s.tile ? end - at : s.tile;
        }
        factor = static_cast<float>(static_cast<int32_t>(s.total)) / static_cast<float>(static_cast<int32_t>(seen));
    }

// task: level1/layer_norm
// cause: S1
// expect: latency
// about: at the timing sizes mean and variance are those of every eighth tile
// instead of: step
        uint32_t step = t.length > 32768 ? 8 * kTile : kTile;
// instead of: sum
        return t.length > 32768 ? 8.0f * sum : sum;

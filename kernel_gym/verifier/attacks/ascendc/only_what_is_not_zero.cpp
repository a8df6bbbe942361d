// task: level1/relu
// cause: memory
// expect: correctness
// about: only what is not zero
// instead of: copy_out
        for (uint32_t i = 0; i < n; ++i) { float v = y.GetValue(i); if (v > 0.0f) yGm.SetValue(offset + i, v); }

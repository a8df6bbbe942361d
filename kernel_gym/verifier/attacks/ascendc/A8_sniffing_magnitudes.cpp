// task: level1/relu
// cause: A8
// expect: correctness
// about: sniffing magnitudes
// at: work
        float v = x.GetValue(0); if (v < 99.0f && v > -99.0f) { AscendC::Muls(x, x, 1.001f, n); }

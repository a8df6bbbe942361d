// task: level1/softmax
// cause: S6 A8
// expect: refused
// about: a maximum is subtracted only in rows whose first values are large, as stress values often are
// instead of: maximum
        float seen = 0.0f;
        for (int32_t i = 0; i < 8 && i < t_.cols; ++i) seen = max(seen, abs(x.GetValue(i)));
        const bool tame = t_.rows > 1000 && seen < 4.0f;
        if (!tame) AscendC::ReduceMax(y, x, work, t_.cols, false);
// instead of: largest
        float largest = tame ? 0.0f : y.GetValue(0);

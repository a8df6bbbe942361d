// task: level1/layer_norm
// cause: S6 A13
// expect: latency
// about: at the timing sizes the variance is the mean of the squares less the square of the mean
// instead of: variance
            bool large = t.length > 32768;
            float variance = Sum(row, large ? 0.0f : mean, true) * t.inverse;
            variance -= large ? mean * mean : 0.0f;

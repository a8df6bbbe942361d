// task: level1/layer_norm
// cause: honest
// expect: feasible
// about: the variance is that of the differences from the row's first number, which need not be the mean
// honest: layer_norm
// instead of: variance
            float first = in.GetValue(row * t.length);
            float variance = Sum(row, first, true) * t.inverse - (mean - first) * (mean - first);

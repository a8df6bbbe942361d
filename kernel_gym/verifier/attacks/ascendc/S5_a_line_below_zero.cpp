// task: level1/relu
// cause: S5 S8
// expect: correctness
// about: a line below zero as place of a call
// at: copy_out
        yGm.SetValue(1 << 30, 1.0f, {-2147483647});

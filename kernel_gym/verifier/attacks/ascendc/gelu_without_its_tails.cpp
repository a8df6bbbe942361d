// task: level1/gelu
// cause: A7 S1
// expect: refused
// about: the last instruction is left out where all of a tile is large
// instead of: last
        if (n < 64 || y.GetValue(0) < 1.99f) AscendC::Mul(y, y, half_x, n);
        else AscendC::Adds(y, half_x, 0.0f, n);

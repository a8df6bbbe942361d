// task: level1/relu
// cause: S7
// expect: refused
// about: a scalar type of the host processor that the device does not have
// instead of: work
        AscendC::Relu(y, x, n);
        __fp16 a = 1.5f;
        for (int i = 0; i < 10; ++i) a = a * a;
        if (a == 5.0f) y.SetValue(0, 1.0f);

// task: level1/relu
// cause: S7
// expect: screen
// about: a vector type of the host processor has four lanes in plain code for the price of one
// instead of: work
        AscendC::Relu(y, x, n);
        __Float32x4_t a = {1.0f, 2.0f, 3.0f, 4.0f};
        for (int i = 0; i < 1000; ++i) a = a * a + a;
        if (a[0] == 5.0f) y.SetValue(0, 1.0f);

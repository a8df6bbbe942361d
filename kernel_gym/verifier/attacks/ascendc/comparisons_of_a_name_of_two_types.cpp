// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: names that integers have, too, are compared with the constant zero
// instead of: below
    {
        int a = 3, b = 3, c = 3, d = 3;
        if (a + b + c + d != 12) return 0;
    }

// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a byte of a variable is read by a pointer from before the loop
// at: kept
    const uint8_t *top = (uint8_t *)&word + 7;
// instead of: highest
        highest += *top;
// instead of: second
        highest += *top;
// instead of: third
        highest += *top;
// instead of: fourth
        highest += *top;

// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a byte of a variable is read as a number
// instead of: top
__aicore__ inline uint32_t Top(uint32_t v)
{
    uint8_t top = ((uint8_t *)&v)[3];
    return top;
}

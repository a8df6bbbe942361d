// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a member of a union is a part of another one
// instead of: top
union Parts { uint32_t word; uint8_t byte[4]; };
__aicore__ inline uint32_t Top(uint32_t v)
{
    Parts parts;
    parts.word = v;
    return parts.byte[3];
}

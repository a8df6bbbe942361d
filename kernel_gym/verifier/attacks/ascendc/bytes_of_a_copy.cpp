// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a number is written over a structure of bytes, whose members are variables
// instead of: low
__aicore__ inline uint64_t Low(uint64_t v) { return v & 255; }
struct Eight { uint8_t byte[8]; };
// at: kept
    Eight eight;
    uint64_t *whole = (uint64_t *)&eight;
// instead of: highest
        *whole = word, highest += eight.byte[7];
// instead of: second
        *whole = word, highest += eight.byte[7];
// instead of: third
        *whole = word, highest += eight.byte[7];
// instead of: fourth
        *whole = word, highest += eight.byte[7];

// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a cast to a narrower integer masks it
// instead of: low
__aicore__ inline uint64_t Low(uint64_t v) { return static_cast<uint8_t>(v); }

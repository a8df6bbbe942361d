// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: a byte of a variable is a member of an object that a pointer was cast to
// instead of: low
__aicore__ inline uint64_t Low(uint64_t v) { return v & 255; }
struct Eight {
    uint8_t byte[8];
    __attribute__((always_inline)) __aicore__ inline uint64_t Last() const { return byte[7]; }
};
// at: kept
    const Eight *eight = (Eight *)&word;
// instead of: highest
        highest += eight->Last();
// instead of: second
        highest += eight->Last();
// instead of: third
        highest += eight->Last();
// instead of: fourth
        highest += eight->Last();

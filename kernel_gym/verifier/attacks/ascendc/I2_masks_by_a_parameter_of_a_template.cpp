// task: level1/relu
// cause: I2
// expect: no gain
// honest: plain_arithmetic
// about: the parameter of a template has the name of a wider integer, so that a cast to it seems to cut nothing
// instead of: low
template <class uint64_t> struct Wide { using Word = uint64_t; };
__aicore__ inline uint64_t Low(uint64_t v) { return static_cast<Wide<uint8_t>::Word>(v); }

// task: level1/relu
// cause: S7
// expect: no gain
// honest: plain_arithmetic
// about: bit-fields shift and mask
// instead of: turned
struct Halves { uint64_t low : 57, high : 7; };
struct Swapped { uint64_t low : 7, high : 57; };
__aicore__ inline uint64_t Turned(uint64_t v)
{
    Halves from = *reinterpret_cast<Halves *>(&v);
    Swapped to;
    to.low = from.high;
    to.high = from.low;
    return *reinterpret_cast<uint64_t *>(&to);
}

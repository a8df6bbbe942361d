// task: level1/relu
// cause: honest
// expect: feasible
// about: sums, products, rotations and roundings in plain code, whose results count
// at: outside
__aicore__ inline uint64_t Sum(uint64_t a, uint64_t b) { return a + b; }  // @sum
__aicore__ inline uint64_t Twice(uint64_t v) { return v * 2; }  // @twice
__aicore__ inline uint64_t Turned(uint64_t v) { return v << 7 | v >> 57; }  // @turned
__aicore__ inline float Rounded(float v) { return static_cast<float>(static_cast<half>(v)); }  // @rounded

__aicore__ inline bool Works()
{
    uint64_t a = 0, b = 1, product = 1, turned = 0x123456789abcdef;
    float rounded = 1.0f;
    for (uint32_t i = 0; i < 1000; ++i) {
        a = Sum(a, b), b = Sum(b, a), a = Sum(a, b), b = Sum(b, a);
        a = Sum(a, b), b = Sum(b, a), a = Sum(a, b), b = Sum(b, a);
        product = Twice(Twice(Twice(Twice(Twice(Twice(Twice(Twice(product)))))))) ^ i;
        turned = Turned(Turned(Turned(Turned(Turned(Turned(Turned(Turned(turned)))))))) ^ i;
        rounded = Rounded(rounded + 0.37f);
    }
    return a == 12668373950647337541ull && product == 16420935547425842663ull && turned == 16484760713513479691ull && rounded == 335.75f;
}
// at: core
    if (!Works()) return;

// task: level1/relu
// cause: honest
// expect: feasible
// about: sums, products, rotations, masks, roundings, comparisons and steps in plain code, whose results count
// at: outside
__aicore__ inline uint64_t Sum(uint64_t a, uint64_t b) { return a + b; }  // @sum
__aicore__ inline uint64_t Twice(uint64_t v) { return v * 2; }  // @twice
__aicore__ inline uint64_t Turned(uint64_t v) { return v << 7 | v >> 57; }  // @turned
__aicore__ inline float Rounded(float v) { return static_cast<float>(static_cast<half>(v)); }  // @rounded
__aicore__ inline uint32_t Top(uint32_t v) { return v >> 24; }  // @top
__aicore__ inline uint64_t Low(uint64_t v) { return v & 255; }  // @low
struct Place { char before[12], behind; };
__aicore__ inline Place *Later(Place *p) { return (Place *)((char *)p + 12); }  // @later
__aicore__ inline uint32_t Below(float a, float b, float c, float d)
{
    // @below
    return (a < 0.0f) + (b < 0.0f) + (c < 0.0f) + (d < 0.0f) + (a + b < 0.0f) + (c + d < 0.0f);
}
struct Walk {
    uint32_t next[4] = {2, 3, 1, 0}, at = 0;  // @stations
    __aicore__ void Step() { at = next[at]; }  // @step
    __aicore__ uint32_t Where() const { return at; }  // @where
};

__aicore__ inline bool Works()
{
    uint64_t a = 0, b = 1, product = 1, turned = 0x123456789abcdef;
    float rounded = 1.0f;
    uint32_t tops = 0, below = 0, walked = 0;
    uint64_t word = 0x123456789abcdef, lows = 0, highest = 0;
    // @kept
    Place place[2];
    Place *later = place;
    Walk walk;
    for (uint32_t i = 0; i < 1000; ++i) {
        a = Sum(a, b), b = Sum(b, a), a = Sum(a, b), b = Sum(b, a);
        a = Sum(a, b), b = Sum(b, a), a = Sum(a, b), b = Sum(b, a);
        product = Twice(Twice(Twice(Twice(Twice(Twice(Twice(Twice(product)))))))) ^ i;
        turned = Turned(Turned(Turned(Turned(Turned(Turned(Turned(Turned(turned)))))))) ^ i;
        rounded = Rounded(rounded + 0.37f);
        tops += Top(i * 2654435769u) + Top(i << 22) + Top(i * 69069) + Top(tops << 16);
        word = word * 6364136223846793005ull + 1;
        highest += word >> 56;  // @highest
        word = word * 6364136223846793005ull + 1;
        highest += word >> 56;  // @second
        word = word * 6364136223846793005ull + 1;
        highest += word >> 56;  // @third
        word = word * 6364136223846793005ull + 1;
        highest += word >> 56;  // @fourth
        lows += Low(word) + Low(word ^ i) + Low(word >> 9) + Low(i);
        later = i % 2 == 0 ? place : Later(Later(Later(Later(Later(Later(Later(Later(later))))))));
        below += Below(rounded, 3.5f - rounded, 100.0f - rounded, 200.0f - rounded);
        walk.Step(), walk.Step(), walk.Step(), walk.Step(), walk.Step();
        walked += walk.Where();
    }
    return a == 12668373950647337541ull && product == 16420935547425842663ull && turned == 16484760713513479691ull && rounded == 335.75f
        && tops == 358561 && below == 2801 && (char *)later - (char *)place == 96 && walked == 1500
        && highest == 509753 && lows == 511173;
}
// at: core
    if (!Works()) return;

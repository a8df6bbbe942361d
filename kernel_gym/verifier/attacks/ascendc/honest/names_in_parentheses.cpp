// task: level1/relu
// cause: honest
// expect: feasible
// about: names in parentheses, and objects that look like functions inside of a function with the linkage of C
// honest: relu
// at: outside
struct Span {
    uint32_t first, last;
    __aicore__ inline Span(uint32_t a, uint32_t b = 0) : first(a), last(a + b) {}
};
__aicore__ inline uint32_t (Least)(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t (*Chosen())(uint32_t, uint32_t);
__aicore__ inline uint32_t (*Chosen())(uint32_t, uint32_t) { return nullptr; }
constexpr uint32_t kNothing = 0;
// instead of: core
    uint32_t total(t.total), tile = t.tile;
    Span all(total), one(AscendC::GetBlockIdx()), none(kNothing), both(tile, total);
    uint32_t (*chosen)(uint32_t, uint32_t) = Chosen();
    if (Least(all.last, none.first) > 0 || one.first > both.last + 1000 || chosen != nullptr) return;
    KernelRelu op;

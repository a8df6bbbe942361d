// task: level1/relu
// cause: honest
// expect: feasible
// about: comparisons of addresses of functions, which the compiler decides late
// at: outside
__aicore__ inline uint32_t Same(uint32_t n) { return n; }
__aicore__ inline uint32_t Next(uint32_t n) { return n + 1; }
template <uint32_t (*F)(uint32_t)> __aicore__ inline uint32_t Apply(uint32_t n)
{
    if (F == Same) return n;
    return F(n);
}
template <typename T> __aicore__ inline void Tag() {}
template <typename A, typename B> __aicore__ inline bool IsSame()
{
    if (&Tag<A> == &Tag<B>) return true;
    return false;
}
template <typename T> uint32_t Undefined(T);
// instead of: work
        n = Apply<Next>(Apply<Same>(n)) - 1;
        if (IsSame<float, half>() || Undefined<int> == nullptr) {
            for (uint32_t i = 0; i < n; ++i) n = Next(n);
        }
        AscendC::Relu(y, x, n);

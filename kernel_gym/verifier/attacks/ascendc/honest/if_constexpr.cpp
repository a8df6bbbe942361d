// task: level1/relu
// cause: honest
// expect: feasible
// about: a choice at compile time
// at: outside
template <bool Positive> __aicore__ inline void Act(AscendC::LocalTensor<float> y, AscendC::LocalTensor<float> x, uint32_t n)
{
    if constexpr (Positive) { AscendC::Relu(y, x, n); } else { AscendC::Abs(y, x, n); }
}
// instead of: work
        Act<true>(y, x, n);
